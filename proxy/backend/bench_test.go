//go:build unix

package backend_test

import (
	"bufio"
	"fmt"
	"os/exec"
	"testing"

	"toolguardian/proxy/backend"
)

// The same echo server, once through Request and once over a bare pipe.
func BenchmarkRequest(b *testing.B) {
	s := script("")
	s.Args = []string{"-mode", "echo"}
	be := up(b, s)
	params := callParams("echo", `{"text":"hello"}`)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := be.Request(b.Context(), "tools/call", params, backend.Observer{}); err != nil || r.Err != nil {
			b.Fatal(err, r.Err)
		}
	}
}

func BenchmarkRequestParallel(b *testing.B) {
	s := script("")
	s.Args = []string{"-mode", "echo"}
	be := up(b, s)
	params := callParams("echo", `{"text":"hello"}`)
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := be.Request(b.Context(), "tools/call", params, backend.Observer{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkDirectPipe(b *testing.B) {
	cmd := exec.Command(hostile, "-mode", "echo")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	r := bufio.NewReader(out)
	n := 0
	for b.Loop() {
		n++
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%s}`+"\n", n, callParams("echo", `{"text":"hello"}`))
		if _, err := r.ReadBytes('\n'); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLongResult(b *testing.B) {
	be := up(b, script("on tools/call\nbig 10000000"))
	b.SetBytes(10000000)
	for b.Loop() {
		if r, err := be.Request(b.Context(), "tools/call", callParams("x", `{}`), backend.Observer{}); err != nil || r.Err != nil {
			b.Fatal(err, r.Err)
		}
	}
}
