package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"

	"toolguardian/proxy/config"
)

// foreign is a server as another client has it.
type foreign struct {
	name string
	raw  json.RawMessage
}

const maxForeign = 16 << 20 // bytes of a client's file

// readJSON reads JSON with comments. Members are found by their exact names;
// where one is absent there are no servers.
func readJSON(file string, b []byte, path []string) (found []foreign, err error) {
	if err := config.Check(file, b); err != nil {
		return nil, err
	}
	v, err := hujson.Parse(bytes.TrimPrefix(b, []byte(bom)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, name := range path {
		all := members(v)
		i := slices.IndexFunc(all, func(m hujson.ObjectMember) bool { return literal(m.Name) == name })
		if i < 0 {
			return nil, nil
		}
		v = all[i].Value
	}
	for _, m := range members(v) {
		if m.Value.Value.Kind() != '{' {
			continue // such as VS Code's "inputs"
		}
		plain := m.Value.Clone()
		plain.BeforeExtra, plain.AfterExtra = nil, nil
		plain.Minimize()
		found = append(found, foreign{literal(m.Name), plain.Pack()})
	}
	return found, nil
}

func readTOML(file string, b []byte, path []string) ([]foreign, error) {
	if len(b) > maxForeign {
		return nil, fmt.Errorf("%s: %d bytes; at most %d are read", file, len(b), maxForeign)
	}
	var root map[string]any
	var wrong *toml.DecodeError
	if err := toml.Unmarshal(b, &root); errors.As(err, &wrong) {
		line, col := wrong.Position()
		return nil, fmt.Errorf("%s:%d:%d: %w", file, line, col, err)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	servers, _ := root[path[0]].(map[string]any)
	var found []foreign
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		raw, err := json.Marshal(servers[name])
		if err != nil {
			return nil, fmt.Errorf("%s: server %q: %w", file, name, err)
		}
		found = append(found, foreign{name, raw})
	}
	return found, nil
}

// readYAML reads a list of servers that say their names.
func readYAML(file string, b []byte, path []string) ([]foreign, error) {
	if len(b) > maxForeign {
		return nil, fmt.Errorf("%s: %d bytes; at most %d are read", file, len(b), maxForeign)
	}
	var root map[string]any
	if err := yaml.Unmarshal(b, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err) // it names the line
	}
	servers, _ := root[path[0]].([]any)
	var found []foreign
	for i, s := range servers {
		entry, _ := s.(map[string]any)
		name, _ := entry["name"].(string)
		raw, err := json.Marshal(entry)
		if err != nil || name == "" {
			return nil, fmt.Errorf("%s: entry %d of %s cannot be read: it needs a name and plain values", file, i+1, path[0])
		}
		found = append(found, foreign{name, raw})
	}
	return found, nil
}
