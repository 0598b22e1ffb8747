package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toolguardian/proxy/wire"
)

// Options are toolGuardian.ladder of the configuration. Characters are code
// points. Start from Defaults: a zero counts.
type Options struct {
	CompactAboveChars int `json:"compact_above_chars"` // below, a result is left alone
	ErrorSummaryChars int `json:"error_summary_chars"` // what is shown of a longer error
	StructMinChars    int `json:"struct_min_chars"`    // from here on JSON arrays and CSV are summed up
	ShellMinChars     int `json:"shell_min_chars"`     // from here on lines are sampled
	ShellHeadLines    int `json:"shell_head_lines"`
	ShellTailLines    int `json:"shell_tail_lines"`
	ShellSampleLines  int `json:"shell_sample_lines"`
	StructKeepItems   int `json:"struct_keep_items"` // at each end
	DiffContextLines  int `json:"diff_context_lines"`
	CharHead          int `json:"char_head"` // of a line too long to show
	CharTail          int `json:"char_tail"`

	// ExemptTools are left alone: names, or prefixes with a * at the end.
	ExemptTools []string `json:"exempt_tools"`
	// ExemptFileText leaves tools alone that are named as if they answer with
	// a file's text, like read_text_file: edits need that text exactly.
	ExemptFileText bool `json:"exempt_file_text"`
	// ShellTools answer with the lines of a command: what looks like a JSON
	// array or CSV is sampled by lines as well.
	ShellTools []string `json:"shell_tools"`
}

// Defaults are the options of a configuration that says nothing.
func Defaults() Options {
	return Options{
		CompactAboveChars: 1_200,
		ErrorSummaryChars: 300,
		StructMinChars:    10_000,
		ShellMinChars:     8_000,
		ShellHeadLines:    40,
		ShellTailLines:    40,
		ShellSampleLines:  20,
		StructKeepItems:   5,
		DiffContextLines:  2,
		CharHead:          3_000,
		CharTail:          1_500,
		ExemptTools:       []string{"read", "read_image", "read_skill", "describe_tool", "retrieve_spill"},
		ExemptFileText:    true,
	}
}

// ParseOptions reads the object toolGuardian.ladder over the defaults; nil
// gives those. The error names the key and what it may hold.
func ParseOptions(raw json.RawMessage) (Options, error) {
	o := Defaults()
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return o, nil
	}
	keys := o.keys()
	for m, err := range wire.Members(raw) {
		if err != nil {
			return o, fmt.Errorf("toolGuardian.ladder: %w", err)
		}
		to, known := keys[m.Key]
		if !known {
			return o, fmt.Errorf("toolGuardian.ladder.%s is no key of the ladder: use one of %s", m.Key, strings.Join(keyNames(keys), ", "))
		}
		if json.Unmarshal(m.Value, to) != nil {
			return o, fmt.Errorf("toolGuardian.ladder.%s is %.40s: use %s", m.Key, m.Value, wanted(to))
		}
	}
	return o, o.check()
}

func wanted(to any) string {
	switch to.(type) {
	case *[]string:
		return "a list of tool names"
	case *bool:
		return "true or false"
	}
	return "a whole number, 0 or more"
}

func keyNames(keys map[string]any) []string {
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// keys are where each key's value goes.
func (o *Options) keys() map[string]any {
	keys := map[string]any{"exempt_tools": &o.ExemptTools, "exempt_file_text": &o.ExemptFileText, "shell_tools": &o.ShellTools}
	for name, n := range o.numbers() {
		keys[name] = n
	}
	return keys
}

func (o *Options) numbers() map[string]*int {
	return map[string]*int{
		"compact_above_chars": &o.CompactAboveChars, "error_summary_chars": &o.ErrorSummaryChars,
		"struct_min_chars": &o.StructMinChars, "shell_min_chars": &o.ShellMinChars,
		"shell_head_lines": &o.ShellHeadLines, "shell_tail_lines": &o.ShellTailLines,
		"shell_sample_lines": &o.ShellSampleLines, "struct_keep_items": &o.StructKeepItems,
		"diff_context_lines": &o.DiffContextLines, "char_head": &o.CharHead, "char_tail": &o.CharTail,
	}
}

// maxOption keeps sums and products of options within an int.
const maxOption = 1_000_000_000

func (o *Options) check() error {
	for name, n := range o.numbers() {
		if *n < 0 || *n > maxOption {
			return fmt.Errorf("toolGuardian.ladder.%s is %d: use a whole number from 0 to %d", name, *n, maxOption)
		}
	}
	if o.CharHead+o.CharTail == 0 {
		return errors.New("toolGuardian.ladder: char_head and char_tail are both 0, so nothing of a long line would be shown: give one of them")
	}
	return nil
}

// exempt says that a tool's results are left alone.
func (o *Options) exempt(tool string) bool {
	return named(o.ExemptTools, tool) || o.ExemptFileText && fileText(tool)
}

// named looks a tool up in a list, whatever the case of its letters.
func named(list []string, tool string) bool {
	return slices.ContainsFunc(list, func(entry string) bool {
		if prefix, ok := strings.CutSuffix(entry, "*"); ok {
			return len(tool) >= len(prefix) && strings.EqualFold(tool[:len(prefix)], prefix)
		}
		return strings.EqualFold(entry, tool)
	})
}
