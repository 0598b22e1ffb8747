package proxy

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/front"
	"toolguardian/proxy/journal"
	"toolguardian/proxy/spill"
	"toolguardian/proxy/wire"
)

// alternating gives two results in turn, so that no call repeats itself.
func alternating(a, b string) func(context.Context, string, json.RawMessage, backend.Observer) (backend.Reply, error) {
	return func(context.Context, string, json.RawMessage, backend.Observer) (backend.Reply, error) {
		a, b = b, a
		return backend.Reply{Result: json.RawMessage(a)}, nil
	}
}

// BenchmarkCall is what the router itself costs: no pipes, no process.
func BenchmarkCall(b *testing.B) {
	for _, mode := range []EvidenceMode{EvidenceOff, EvidenceOn} {
		b.Run(string(mode), func(b *testing.B) {
			m := newMemory(nil, echoTool)
			m.answer = alternating(`{"content":[{"type":"text","text":"hi"}]}`, `{"content":[{"type":"text","text":"ho"}]}`)
			m.quiet = true
			o := memories(map[string]*memory{"s": m})
			o.Evidence, o.Recorder = mode, newRecorder(b, &diary{})
			r := newRouter(b, o)
			r.startAll(b.Context())
			s := &front.Session{ID: "one", Principal: "p"}
			if err := r.OpenSession(b.Context(), s); err != nil {
				b.Fatal(err)
			}
			call := front.Call{ID: wire.IntID(1), Name: callTool, Arguments: json.RawMessage(`{"server":"s","tool":"echo","args":{"text":"hi"}}`)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.CallTool(b.Context(), s, call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLargeCall passes 64 KB in both directions, through every step but
// the evidence.
func BenchmarkLargeCall(b *testing.B) {
	text := strings.Repeat("x", 64<<10)
	m := newMemory(nil, echoTool)
	m.answer = alternating(longResult(text), longResult(text+"."))
	m.quiet = true
	store, err := spill.New(spill.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	o := memories(map[string]*memory{"s": m})
	o.Spills, o.Calls = store, journal.OpenCalls(filepath.Join(b.TempDir(), "calls.jsonl"), slog.New(slog.DiscardHandler))
	defer o.Calls.Close()
	o.Config.ToolGuardian = []byte(`{"ladder":{"exempt_tools":["echo"]}}`)
	r := newRouter(b, o)
	r.startAll(b.Context())
	s := &front.Session{ID: "one", Principal: "p"}
	if err := r.OpenSession(b.Context(), s); err != nil {
		b.Fatal(err)
	}
	call := front.Call{ID: wire.IntID(1), Name: callTool, Arguments: json.RawMessage(`{"server":"s","tool":"echo","args":{"text":"` + text + `"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.CallTool(b.Context(), s, call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDeliver(b *testing.B) {
	for name, size := range map[string]int{"100B": 100, "1MB": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			raw := json.RawMessage(`{"content":[` + string(textBlock(string(make([]byte, size)))) + `]}`)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := readResult(raw)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := r.deliver(nil, nextAnswer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
