package front_test

import (
	"bufio"
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"toolguardian/proxy/front"
	"toolguardian/proxy/wire"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// patience bounds how long a test waits for a line that must come.
const patience = 20 * time.Second

// await returns what must come over a channel, and fails with every stack if
// it does not.
func await[T any](t *testing.T, what string, from <-chan T) (got T) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case got = <-from:
	case <-timer.C:
		stacks := make([]byte, 1<<20)
		t.Fatalf("no sign of %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
	}
	return got
}

// peer is a client on real pipes.
type peer struct {
	t      *testing.T
	h      *scripted
	srv    *front.Server
	in     *os.File // what the server reads
	out    *bufio.Reader
	served chan error
}

func serve(t *testing.T, h *scripted, o front.Options) *peer {
	t.Helper()
	o.Handler, o.Principal = h, "tester"
	o.Info = front.Info{Name: "guardian", Title: "The Guardian", Version: "0.1"}
	srv, err := front.New(o)
	if err != nil {
		t.Fatal(err)
	}
	serverIn, clientOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	clientIn, serverOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := clientIn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t, h: h, srv: srv, in: clientOut, out: bufio.NewReader(clientIn), served: make(chan error, 1)}
	go func() {
		err := srv.ServeStdio(t.Context(), serverIn, serverOut)
		serverOut.Close()
		p.served <- err
	}()
	t.Cleanup(func() {
		clientOut.Close()
		clientIn.Close()
		serverIn.Close()
	})
	return p
}

func (p *peer) send(line string) {
	p.t.Helper()
	if _, err := p.in.WriteString(line + "\n"); err != nil {
		p.t.Fatal(err)
	}
}

// line returns the server's next line.
func (p *peer) line() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the server is silent: %v (after %q)", err, line)
	}
	return strings.TrimSuffix(line, "\n")
}

// rest ends the client's side and returns what still comes.
func (p *peer) rest() []string {
	p.t.Helper()
	p.in.Close()
	var lines []string
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			break
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	if err := await(p.t, "ServeStdio", p.served); err != nil {
		p.t.Errorf("ServeStdio: %v", err)
	}
	return lines
}

// play sends a transcript's client lines and returns the transcript as it
// went. "> " sends a line and reads up to a reply; ">> " only sends; "! "
// tells the server that the tools changed and reads a line. "< " is a line of
// the server, "= " what the handler was asked.
func play(t *testing.T, script string) string {
	p := serve(t, newScripted(), front.Options{})
	var b strings.Builder
	write := func(mark, line string) { b.WriteString(mark + " " + line + "\n") }
	events := func() {
		for _, event := range p.h.taken() {
			write("=", event)
		}
	}
	for line := range strings.Lines(script) {
		mark, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch mark {
		case ">":
			write(mark, text)
			p.send(text)
			for answered := false; !answered; {
				line := p.line()
				answered = wire.Get([]byte(line), "method") == nil
				events()
				write("<", line)
			}
		case ">>":
			write(mark, text)
			p.send(text)
		case "!":
			write(mark, text)
			p.srv.ToolsChanged()
			write("<", p.line())
		case "#":
			b.WriteString(line)
		}
	}
	for _, line := range p.rest() {
		write("<", line)
	}
	events()
	return b.String() + "\n"
}

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			before := txtar.Format(ar)
			for i := range ar.Files {
				ar.Files[i].Data = []byte(play(t, string(ar.Files[i].Data)))
			}
			after := txtar.Format(ar)
			if *update {
				if err := os.WriteFile(name, after, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(before, after) {
				t.Errorf("the transcript differs (-want +got):\n%s", cmp.Diff(string(before), string(after)))
			}
		})
	}
}
