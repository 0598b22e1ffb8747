package args

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"toolguardian/proxy/wire"
)

// The schemas of real servers can all be used, and for each that a call without
// arguments does not fit, an example is made that does.
func TestRecordedSchemas(t *testing.T) {
	root := os.Getenv("TOOL_GUARDIAN_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	files, err := filepath.Glob(filepath.Join(root, "catalogs", "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("there are no recorded catalogues at " + root)
	}
	tools, examples := 0, 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		for _, raw := range doc.Tools {
			name, _ := wire.GetString(raw, "name")
			s := &schema{input: wire.Get(raw, "inputSchema")}
			if s.v, err = compile(s.input, time.Minute); err != nil {
				t.Errorf("%s %s: %v", filepath.Base(file), name, err)
				continue
			}
			tools++
			faults, err := s.v.check(map[string]any{}, time.Minute)
			if err != nil {
				t.Errorf("%s %s: %v", filepath.Base(file), name, err)
			}
			if len(faults) == 0 {
				continue
			}
			if examples++; s.example(map[string]any{}, faults, time.Minute) == "" {
				t.Errorf("%s %s: no example for %s", filepath.Base(file), name, faults[0].text)
			}
		}
	}
	if tools < 100 || examples < tools/3 {
		t.Errorf("%d schemas, %d examples", tools, examples)
	}
}
