package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"toolguardian/proxy/catalogue"
	"toolguardian/proxy/wire"
)

// ReadSettings takes the TOOL_GUARDIAN_* that concern the router. An empty one
// counts as absent. The error names each that cannot be used, and what it may
// be.
func (o *Options) ReadSettings(lookup func(name string) (string, bool)) error {
	var errs []error
	for _, s := range []struct {
		name string
		take func(value string) error
	}{
		{"TOOL_GUARDIAN_WAIT", seconds(&o.Wait)},
		{"TOOL_GUARDIAN_START_TIMEOUT", seconds(&o.StartTimeout)},
		{"TOOL_GUARDIAN_CALL_TIMEOUT", seconds(&o.CallTimeout)},
		{"TOOL_GUARDIAN_PRESET", o.preset}, // before those that override it
		{"TOOL_GUARDIAN_DESC_WORDS", whole(&o.DescWords)},
		{"TOOL_GUARDIAN_CATALOGUE_CHARS", whole(&o.MaxChars)},
		{"TOOL_GUARDIAN_TERSE", unless(&o.Terse, "0")},
		{"TOOL_GUARDIAN_HINTS", is(&o.Needs, "1")},
		{"TOOL_GUARDIAN_SKILLS", folders(&o.SkillFolders)},
		{"TOOL_GUARDIAN_RAW_RESULTS", is(&o.RawResults, "1")},
		{"TOOL_GUARDIAN_DESCRIBE_DETAIL", is(&o.DescribeFull, "full")},
		{"TOOL_GUARDIAN_EVIDENCE", mode(&o.Evidence)},
		{"TOOL_GUARDIAN_LADDER", is(&o.NoLadder, "0")},
		{"TOOL_GUARDIAN_INTENT", is(&o.Intent, "1")},
		{"TG_VALIDATE_ARGS", is(&o.Unchecked, "0")},
		{"TG_LOOP_GUARD", is(&o.Unguarded, "0")},
		{"TG_DISCOVERY_LIMIT", limit(&o.LookLimit)},
	} {
		if v, ok := lookup(s.name); ok && v != "" {
			if err := s.take(v); err != nil {
				errs = append(errs, fmt.Errorf("%s=%q: %w", s.name, v, err))
			}
		}
	}
	return errors.Join(errs...)
}

func seconds(to *time.Duration) func(string) error {
	return func(v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f > 0 && f < 1e6) {
			return errors.New("use a number of seconds above 0")
		}
		*to = time.Duration(f * float64(time.Second))
		return nil
	}
}

func whole(to *int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return errors.New("use a whole number, 0 or more")
		}
		*to = n
		return nil
	}
}

// limit is a whole number of which 0 means none.
func limit(to *int) func(string) error {
	read := whole(to)
	return func(v string) error {
		if err := read(v); err != nil || *to > 0 {
			return err
		}
		*to = -1
		return nil
	}
}

func is(to *bool, on string) func(string) error {
	return func(v string) error {
		*to = v == on
		return nil
	}
}

func unless(to *bool, off string) func(string) error {
	return func(v string) error {
		*to = v != off
		return nil
	}
}

// preset sets several values at once.
func (o *Options) preset(v string) error {
	if v != "small" {
		return errors.New("use small, or leave it out")
	}
	o.MaxChars, o.DescWords, o.Terse = 1500, 6, true
	return nil
}

// folders are written like PATH.
func folders(to *[]string) func(string) error {
	return func(v string) error {
		*to = slices.DeleteFunc(filepath.SplitList(v), func(f string) bool { return f == "" })
		return nil
	}
}

func mode(to *EvidenceMode) func(string) error {
	return func(v string) error {
		switch m := EvidenceMode(v); m {
		case EvidenceOff, EvidenceOn, EvidenceRequired:
			*to = m
			return nil
		}
		return errors.New("use off, on or required")
	}
}

// fileSettings are those of the config file's toolGuardian that concern the
// router.
type fileSettings struct {
	groups     []catalogue.Group
	loopExempt []string // tools that are made to be polled
	repeatable []string // tools that may be called again when their server died
}

func readFile(toolGuardian json.RawMessage) (f fileSettings, err error) {
	for name, to := range map[string]*[]string{"loopExempt": &f.loopExempt, "repeatable": &f.repeatable} {
		raw := wire.Get(toolGuardian, name)
		if raw != nil && json.Unmarshal(raw, to) != nil {
			err = errors.Join(err, fmt.Errorf(`toolGuardian.%s is %s: use a list of tools, like ["server.tool", "server.prefix*"]`, name, raw))
		}
	}
	groups, wrong := catalogue.ParseGroups(wire.Get(toolGuardian, "groups"))
	if wrong != nil {
		wrong = fmt.Errorf("toolGuardian.%w", wrong)
	}
	f.groups = groups
	return f, errors.Join(err, wrong)
}
