package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed is the package table of the design: what each of our packages may
// import of ours. A package missing here fails the test, so a new room is
// a decision and not an accident.
var allowed = map[string][]string{
	"receipts":                {},
	"policy":                  {},
	"tsa":                     {},
	"chain/tlog":              {},
	"chain":                   {"receipts", "chain/tlog"},
	"witness/api":             {"chain/tlog"},
	"witness/store":           {"chain/tlog"},
	"witness/store/storetest": {"chain/tlog", "witness/store"},
	"witness/store/bolt":      {"chain/tlog", "witness/store"},
	"witness":                 {"witness/api", "witness/store", "witness/store/bolt", "chain/tlog", "tsa"},
	"anchor":                  {"receipts", "chain", "chain/tlog", "witness/api", "tsa"},
	"proxy/wire":              {},
	"proxy/backend":           {"proxy/wire"},
	"proxy/catalogue":         {},
	"proxy/front":             {"proxy/wire"},
	"proxy/config":            {},
	"proxy/args":              {"proxy/wire", "proxy/catalogue"},
	"proxy/guard":             {"proxy/wire"},
	"proxy/journal":           {},
	"proxy/shape":             {"proxy/wire"},
	"proxy/spill":             {},
	"proxy/setup":             {"proxy/config"},
	"proxy": {"policy", "receipts", "proxy/wire", "proxy/backend", "proxy/catalogue",
		"proxy/front", "proxy/config", "proxy/args", "proxy/guard", "proxy/journal",
		"proxy/shape", "proxy/spill"},
}

// onlyIn lists modules that one package alone may touch.
var onlyIn = map[string][]string{
	"go.etcd.io/bbolt": {"witness/store/bolt"},
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "toolguardian/...")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []listed
	for d := json.NewDecoder(out); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImportsFollowTheTable(t *testing.T) {
	const module = "toolguardian/"
	seen := 0
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "testdata/") {
			continue
		}
		may, known := allowed[name]
		if !known {
			t.Errorf("%s is not in the package table", name)
			continue
		}
		seen++
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module); ok && !slices.Contains(may, ours) {
				t.Errorf("%s must not import %s", name, ours)
			}
			for mod, homes := range onlyIn {
				if strings.HasPrefix(imp, mod) && !slices.Contains(homes, name) {
					t.Errorf("%s must not import %s: only %v may", name, mod, homes)
				}
			}
		}
	}
	if seen != len(allowed) {
		t.Errorf("checked %d packages, the table names %d", seen, len(allowed))
	}
}
