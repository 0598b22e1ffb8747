package front_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"toolguardian/proxy/front"
)

// still answers every call with the same result.
type still struct {
	*scripted
	result json.RawMessage
}

func (s still) CallTool(context.Context, *front.Session, front.Call) (json.RawMessage, error) {
	return s.result, nil
}

// A call over real pipes: what the front costs, two pipe hops included.
func BenchmarkCall(b *testing.B) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	text := strings.Repeat("a line of text\\n", 100)
	h := still{newScripted(), json.RawMessage(`{"content":[{"type":"text","text":"` + text + `"}]}`)}
	for _, bench := range []struct{ name, params string }{
		{"stateful", `{"name":"t","arguments":{"path":"src/main.go"}}`},
		{"stateless", `{"name":"t","arguments":{"path":"src/main.go"},` + meta + `}`},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p := benchPeer(b, h)
			line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + bench.params + "}\n"
			b.ReportAllocs()
			for b.Loop() {
				p.roundTrip(b, line)
			}
		})
	}
}

// What the same two hops cost without the front.
func BenchmarkPipesForComparison(b *testing.B) {
	in, clientOut, clientIn, out := benchPipes(b)
	go func() {
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if _, err := out.Write(line); err != nil {
				return
			}
		}
	}()
	p := benched{clientOut, bufio.NewReader(clientIn)}
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"path":"src/main.go"}}}` + "\n"
	for b.Loop() {
		p.roundTrip(b, line)
	}
}

type benched struct {
	in  *os.File
	out *bufio.Reader
}

func (p benched) roundTrip(b *testing.B, line string) {
	if _, err := p.in.WriteString(line); err != nil {
		b.Fatal(err)
	}
	if _, err := p.out.ReadSlice('\n'); err != nil {
		b.Fatal(err)
	}
}

func benchPeer(b *testing.B, h front.Handler) benched {
	srv, err := front.New(front.Options{Handler: h, Info: front.Info{Name: "guardian", Version: "0.1"}})
	if err != nil {
		b.Fatal(err)
	}
	in, clientOut, clientIn, out := benchPipes(b)
	go srv.ServeStdio(context.Background(), in, out)
	p := benched{clientOut, bufio.NewReader(clientIn)}
	p.roundTrip(b, hello+"\n")
	return p
}

func benchPipes(b *testing.B) (in, clientOut, clientIn, out *os.File) {
	in, clientOut, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	clientIn, out, err = os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		for _, f := range []*os.File{clientOut, in, out, clientIn} {
			f.Close()
		}
	})
	return in, clientOut, clientIn, out
}
