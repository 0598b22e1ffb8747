package bench

import (
	"bufio"
	"io"
	"strings"
	"testing"
	"time"
)

func TestEcho(t *testing.T) {
	in, out := pipes(t)
	answers := bufio.NewReader(out)
	for _, c := range []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
			`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25",`},
		{`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"read","arguments":{"text":"x\u0041\n"}}}`,
			`{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"x\u0041\n"}]}}`},
		{`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read"}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":-32602,`},
		{`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"read",`},
	} {
		if _, err := io.WriteString(in, c.line+"\n"); err != nil {
			t.Fatal(err)
		}
		got, err := answers.ReadString('\n')
		if err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, %v; want %s", c.line, got, err, c.want)
		}
	}
}

// pipes lead to an echo server in this process.
func pipes(t *testing.T) (in io.Writer, out io.Reader) {
	t.Helper()
	toServer, clientIn := io.Pipe()
	clientOut, fromServer := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Echo(toServer, fromServer) }()
	t.Cleanup(func() {
		clientIn.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return clientIn, clientOut
}

// echoing is a client of an echo server in this process.
func echoing(t *testing.T) *client {
	t.Helper()
	in, out := pipes(t)
	return newClient(in, out, directShape())
}

func TestTurns(t *testing.T) {
	c := echoing(t)
	if err := c.hello(); err != nil {
		t.Fatal(err)
	}
	for _, callers := range []int{1, 3, 16, 2} {
		s, err := c.turn([]byte("some text"), callers, time.Now().Add(2*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.took) < callers || s.wall <= 0 {
			t.Errorf("%d callers: %d calls in %v", callers, len(s.took), s.wall)
		}
		for _, d := range s.took {
			if d <= 0 || d > s.wall {
				t.Fatalf("%d callers: a call of %v in a turn of %v", callers, d, s.wall)
			}
		}
	}
}

func TestAnswersAreChecked(t *testing.T) {
	long := strings.Repeat("y", 1<<20)
	for name, c := range map[string]struct{ stream, fault string }{
		"right":        {`{"jsonrpc":"2.0","id":7,"result":{"t":"want"}}`, ""},
		"long":         {`{"jsonrpc":"2.0","id":7,"result":{"t":"` + long + `want"}}`, ""},
		"after a word": {`{"jsonrpc":"2.0","method":"notifications/message"}` + "\n" + `{"jsonrpc":"2.0","id":7,"result":"want"}`, ""},
		"other text":   {`{"jsonrpc":"2.0","id":7,"result":{"t":"wan"}}`, "not what was asked for"},
		"an error":     {`{"jsonrpc":"2.0","id":7,"error":{"message":"want"}}`, "not what was asked for"},
		"strange id":   {`{"jsonrpc":"2.0","id":"7","result":"want"}`, "strange id"},
		"nothing":      {``, "EOF"},
	} {
		cl := newClient(io.Discard, strings.NewReader(c.stream+"\n"), directShape())
		id, err := cl.answer([]byte("want"))
		switch {
		case c.fault == "" && (err != nil || id != 7):
			t.Errorf("%s: id %d, error %v", name, id, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: error %v, want %q", name, err, c.fault)
		}
	}
}
