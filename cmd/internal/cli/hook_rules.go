package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"

	"toolguardian/proxy/wire"
)

// hookRules is the file of `hook pretooluse --rules`. Deny rules come first; an
// allow rule approves nothing, it only ends the looking.
type hookRules struct {
	Deny  []hookRule `json:"deny"`
	Allow []hookRule `json:"allow"`
}

// hookRule matches where Tool is the whole name and each of Args is found in
// that member of the input.
type hookRule struct {
	Tool   string            `json:"tool"`
	Args   map[string]string `json:"args"`
	Reason string            `json:"reason"`
}

type hookVerdict struct {
	deny         bool
	rule, reason string
}

// judgeHook applies the rules; with an error, or without a file, none applies.
func judgeHook(name string, h hookEvent) (hookVerdict, error) {
	if name == "" {
		return hookVerdict{}, nil
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return hookVerdict{}, nil
	}
	if err != nil {
		return hookVerdict{}, err
	}
	var rules hookRules
	if err := json.Unmarshal(b, &rules); err != nil {
		return hookVerdict{}, fmt.Errorf("%s: %w", name, err)
	}
	for i, r := range rules.Deny {
		ok, err := r.matches(h)
		if err != nil {
			return hookVerdict{}, fmt.Errorf("%s: deny[%d]: %w", name, i, err)
		}
		if ok {
			v := hookVerdict{deny: true, rule: fmt.Sprintf("hook deny[%d]", i), reason: r.Reason}
			if v.reason == "" {
				v.reason = fmt.Sprintf("denied by rule deny[%d] of %s", i, name)
			}
			return v, nil
		}
	}
	for i, r := range rules.Allow {
		ok, err := r.matches(h)
		if err != nil {
			return hookVerdict{}, fmt.Errorf("%s: allow[%d]: %w", name, i, err)
		}
		if ok {
			return hookVerdict{rule: fmt.Sprintf("hook allow[%d]", i)}, nil
		}
	}
	return hookVerdict{}, nil
}

func (r hookRule) matches(h hookEvent) (bool, error) {
	if r.Tool == "" {
		return false, errors.New("a rule needs a tool")
	}
	whole, err := regexp.Compile("^(?:" + r.Tool + ")$")
	if err != nil {
		return false, err
	}
	matched := whole.MatchString(h.tool)
	for key, pattern := range r.Args {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return false, err
		}
		value, ok := wire.GetString(h.input, key)
		if !ok {
			raw := wire.Get(h.input, key)
			value, ok = string(raw), raw != nil
		}
		matched = matched && ok && re.MatchString(value)
	}
	return matched, nil
}
