package cli

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"toolguardian/policy"
	"toolguardian/proxy"
	"toolguardian/proxy/backend"
	"toolguardian/proxy/config"
	"toolguardian/proxy/front"
	"toolguardian/proxy/journal"
	"toolguardian/receipts"
)

// shelf is a server that only has tools.
type shelf struct{ proxy.Backend }

func (shelf) Status() backend.Status      { return backend.Status{State: backend.Up} }
func (shelf) Close(context.Context)       {}
func (shelf) Tools() []json.RawMessage    { return []json.RawMessage{[]byte(`{"name":"read_file"}`)} }
func (shelf) Ready(context.Context) error { return nil }

// paper takes every receipt.
type paper struct{}

func (paper) Append(context.Context, receipts.Receipt) (receipts.Position, error) {
	return receipts.Position{}, nil
}
func (paper) PersonSalt(context.Context, []byte) (salt [32]byte, err error) { return salt, nil }

// What one run keeps, the next recalls; a third that starts another server
// loses nothing of it, and a run without news writes nothing.
func TestKeepAndRecall(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	run := func(name string) (kept *proxy.Router, recalled proxy.Options) {
		t.Helper()
		state, err := journal.OpenState(path)
		if err != nil {
			t.Fatal(err)
		}
		o := proxy.Options{Config: &config.Config{Servers: []config.Server{{Name: name}}}, Recorder: paper{}, Policy: policy.AllowAll(),
			Start: func(_ context.Context, _ backend.Spec, bo backend.Options) proxy.Backend {
				bo.OnCatalogue(nil)
				return shelf{}
			}}
		recall(state, &o)
		if o.Previous, err = previous(state, &o); err != nil {
			t.Fatal(err)
		}
		r, err := proxy.New(o)
		if err != nil {
			t.Fatal(err)
		}
		f, err := front.New(front.Options{Handler: r, Info: front.Info{Name: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		if err := r.Serve(t.Context(), f, null, null); err != nil {
			t.Fatal(err)
		}
		if err := keep(state, r); err != nil {
			t.Fatal(err)
		}
		return r, o
	}
	first, fresh := run("one")
	if len(fresh.Seen)+len(fresh.Hints)+len(fresh.Previous.Catalogues) != 0 {
		t.Errorf("a first run recalls %v %v %v", fresh.Seen, fresh.Hints, fresh.Previous.Catalogues)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	_, again := run("one")
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("a run without news wrote the file anew (%v)", err)
	}
	if !maps.Equal(again.Previous.Catalogues, first.Catalogues()) || len(again.Previous.Catalogues) != 1 || len(again.Seen["one"].Tools) != 1 || again.Hints["one"] == "" {
		t.Errorf("recalled %v %v %v", again.Seen, again.Hints, again.Previous.Catalogues)
	}
	run("two")
	if _, all := run("one"); len(all.Seen) != 2 || len(all.Hints) != 2 || len(all.Previous.Catalogues) != 2 {
		t.Errorf("recalled %v %v %v", all.Seen, all.Hints, all.Previous.Catalogues)
	}
}

func TestOpenSpills(t *testing.T) {
	a := &app{Streams: System()}
	for settings, ok := range map[string]bool{`{}`: true, `{"spillKeep":5,"spillMB":10}`: true, `{"spillKeep":0}`: false, `{"spillMB":"many"}`: false} {
		if _, err := a.openSpills(t.TempDir(), &config.Config{ToolGuardian: []byte(settings)}); (err == nil) != ok {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
