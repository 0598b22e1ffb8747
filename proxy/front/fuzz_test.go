package front_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"toolguardian/proxy/front"
	"toolguardian/proxy/wire"
)

// Whatever a client sends: no panic, the sessions opened are closed, and each
// line that comes back is JSON of the protocol.
func FuzzServe(f *testing.F) {
	f.Add([]byte(hello + "\n" + callOf("1.0", "echo") + "\n[]\nnull\n" + cancelOf("1")))
	f.Add([]byte(`{"id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	f.Add([]byte(strings.Replace(hello, "2025-11-25", "2025-03-26", 1) + "\n[" + callOf("1", "raw") + ",5]\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		h := newScripted()
		srv, err := front.New(front.Options{Handler: h, Info: front.Info{Name: "guardian"}, Drain: 500 * time.Millisecond, MaxMessage: 1 << 16})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := srv.ServeStdio(t.Context(), bytes.NewReader(in), &out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) || line[0] == '{' && string(wire.Get([]byte(line), "jsonrpc")) != `"2.0"` {
				t.Errorf("not of the protocol: %q", line)
			}
		}
		opened := 0
		for _, event := range h.taken() {
			switch word, _, _ := strings.Cut(event, " "); word {
			case "open":
				opened++
			case "close":
				opened--
			}
		}
		if opened != 0 {
			t.Errorf("%d sessions were left open", opened)
		}
	})
}
