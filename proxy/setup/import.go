package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// Found is a server of another client, in our form.
type Found struct {
	Source
	Name    string
	Command string
	Args    []string
	URL     string
	Entry   json.RawMessage // as it would be written
	Notes   []string        // what does not come along
	Skip    string          // why it cannot be taken; "" when it can
}

// Discover reads the servers of a client's file; one that is not there has
// none. The error names the place in a file that cannot be read.
func Discover(s Source) ([]Found, error) {
	b, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := s.form.read(s.File, b, s.form.path)
	if err != nil {
		return nil, err
	}
	found := make([]Found, len(all))
	for i, f := range all {
		found[i] = f.convert()
		found[i].Source, found[i].Name = s, f.name
	}
	return found, nil
}

// ourEntry is a server as we write it.
type ourEntry struct {
	Command     string            `json:"command,omitempty"`
	Args        []string          `json:"args,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	EnvPass     []string          `json:"envPass,omitempty"`
	Cwd         string            `json:"cwd,omitempty"`
	Type        string            `json:"type,omitempty"`
	URL         string            `json:"url,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Disabled    bool              `json:"disabled,omitempty"`
	Description string            `json:"description,omitempty"`
}

// theirs are the members that clients have between them.
type theirs struct {
	Command     json.RawMessage `json:"command"` // OpenCode: a list
	Args        []scalar        `json:"args"`
	Env         map[string]scalar
	Environment map[string]scalar // OpenCode
	EnvVars     []string          `json:"env_vars"` // Codex: names to pass on
	EnvFile     string            `json:"envFile"`  // VS Code
	Cwd         string
	Type        string
	URL         string
	ServerURL   string            `json:"serverUrl"` // Windsurf
	HTTPURL     string            `json:"httpUrl"`   // Gemini
	Headers     map[string]scalar //
	HTTPHeaders map[string]scalar `json:"http_headers"`         // Codex
	TokenVar    string            `json:"bearer_token_env_var"` // Codex
	HeaderVars  map[string]string `json:"env_http_headers"`     // Codex: variables by header
	Request     struct {
		Headers map[string]scalar
	} `json:"requestOptions"` // Continue
	Disabled    bool
	Enabled     *bool // OpenCode, Codex
	Description string

	AlwaysAllow   []string `json:"alwaysAllow"`
	AutoApprove   []string `json:"autoApprove"`
	IncludeTools  []string `json:"includeTools"`
	ExcludeTools  []string `json:"excludeTools"`
	EnabledTools  []string `json:"enabled_tools"`
	DisabledTools []string `json:"disabled_tools"`
}

// scalar is a text, or a number or truth value that is meant as one.
type scalar string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scalar) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*s = scalar(plainVariables(text))
		return nil
	}
	if b[0] == '{' || b[0] == '[' || string(b) == "null" {
		return fmt.Errorf("%s is no text", b)
	}
	*s = scalar(b)
	return nil
}

// Other clients' ways to name a variable: ${env:X}, {env:X}, ${{ secrets.X }}.
var theirVariable = regexp.MustCompile(`\$?\{env:([A-Za-z_][A-Za-z0-9_]*)\}|\$\{\{\s*(?:secrets|inputs|env)\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

func plainVariables(s string) string { return theirVariable.ReplaceAllString(s, "$${$1$2}") }

func (f foreign) convert() (out Found) {
	var t theirs
	if err := json.Unmarshal(f.raw, &t); err != nil {
		out.Skip = "it cannot be read: " + err.Error()
		return out
	}
	e, err := t.ours()
	if err != nil {
		out.Skip = err.Error()
		return out
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		out.Skip = err.Error()
		return out
	}
	out.Command, out.Args, out.URL, out.Entry = e.Command, e.Args, e.URL, bytes.TrimSpace(b.Bytes())
	out.Notes = t.notes(f.name)
	return out
}

func (t theirs) ours() (e ourEntry, err error) {
	e = ourEntry{Cwd: t.Cwd, EnvPass: t.EnvVars, Description: t.Description, Disabled: t.Disabled || t.Enabled != nil && !*t.Enabled}
	if e.Command, e.Args, err = t.words(); err != nil {
		return e, err
	}
	e.Env = texts(t.Env, t.Environment)
	for _, url := range []string{t.HTTPURL, t.ServerURL, t.URL} {
		if e.URL == "" {
			e.URL = plainVariables(url)
		}
	}
	if t.EnvFile != "" {
		return e, fmt.Errorf("it reads its variables from %s: put them into a .env of ours, and their names into envPass", t.EnvFile)
	}
	if e.URL == "" {
		return e, nil
	}
	e.Headers = texts(t.Headers, t.HTTPHeaders, t.Request.Headers, t.fromVariables())
	if t.Type == "sse" {
		e.Type = "sse"
	}
	return e, nil
}

// fromVariables are the headers that are said to be in variables.
func (t theirs) fromVariables() map[string]scalar {
	out := map[string]scalar{}
	for header, name := range t.HeaderVars {
		out[header] = scalar("${" + name + "}")
	}
	if t.TokenVar != "" {
		out["Authorization"] = scalar("Bearer ${" + t.TokenVar + "}")
	}
	return out
}

// words are the command line, which some write as one list.
func (t theirs) words() (command string, args []string, err error) {
	for _, a := range t.Args {
		args = append(args, string(a))
	}
	if len(t.Command) == 0 || string(t.Command) == "null" {
		return "", args, nil
	}
	var one scalar
	if json.Unmarshal(t.Command, &one) == nil {
		return string(one), args, nil
	}
	var list []scalar
	if json.Unmarshal(t.Command, &list) != nil || len(list) == 0 {
		return "", nil, errors.New("its command is neither a text nor a list")
	}
	var first []string
	for _, w := range list[1:] {
		first = append(first, string(w))
	}
	return string(list[0]), append(first, args...), nil
}

func texts(maps ...map[string]scalar) map[string]string {
	var out map[string]string
	for _, m := range maps {
		for k, v := range m {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = string(v)
		}
	}
	return out
}

// notes tell what the client allowed or forbade, which is a policy's business
// here.
func (t theirs) notes(name string) (notes []string) {
	rule := func(kind string, names []string) string {
		quoted := make([]string, len(names))
		for i, n := range names {
			quoted[i] = regexp.QuoteMeta(n)
		}
		pattern, _ := json.Marshal("^(" + strings.Join(quoted, "|") + ")$")
		key, _ := json.Marshal(name)
		return fmt.Sprintf(`"servers": {%s: {"%s": [%s]}}`, key, kind, pattern)
	}
	if hidden := append(t.ExcludeTools, t.DisabledTools...); len(hidden) > 0 {
		notes = append(notes, "its client hides "+strings.Join(hidden, ", ")+"; for the same put "+rule("deny", hidden)+" into policy.json")
	}
	if only := append(t.IncludeTools, t.EnabledTools...); len(only) > 0 {
		notes = append(notes, "its client shows "+strings.Join(only, ", ")+" alone; for the same put "+rule("allow", only)+" into policy.json")
	}
	if free := append(t.AlwaysAllow, t.AutoApprove...); len(free) > 0 {
		notes = append(notes, "its client runs "+strings.Join(free, ", ")+" without asking, and asks for the rest; here only what policy.json lists under \"ask\" is asked for")
	}
	return notes
}
