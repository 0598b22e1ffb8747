package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// readAll describes what a reader makes of its input, a word a line.
func readAll(t *testing.T, r *Reader) []string {
	t.Helper()
	var seen []string
	for {
		m, err := r.Next()
		var bad *LineError
		switch {
		case err == nil:
			seen = append(seen, string(m.Raw))
		case errors.As(err, &bad):
			seen = append(seen, fmt.Sprintf("bad %d id=%s", bad.Code, bad.Msg.ID))
		case err == io.EOF:
			return seen
		default:
			t.Fatal(err)
		}
	}
}

func TestReaderClient(t *testing.T) {
	in := "\xef\xbb\xbf{\"id\":1,\"method\":\"a\"}\r\n" +
		"\n \t\r\n" +
		"[]\n5\nnull\nhello\n" +
		"  {\"id\":2,\"method\":\"é\xff\"}  \n" +
		"{\"id\":3,\"method\":\"cut\"\n" +
		"{\"id\":4,\"method\":\"last\"}"
	want := []string{
		`{"id":1,"method":"a"}`,
		"bad -32600 id=", "bad -32600 id=", "bad -32600 id=", "bad -32600 id=",
		"{\"id\":2,\"method\":\"é\xff\"}",
		"bad -32700 id=3",
		`{"id":4,"method":"last"}`,
	}
	readers := map[string]io.Reader{
		"whole":         strings.NewReader(in),
		"byte by byte":  iotest.OneByteReader(strings.NewReader(in)),
		"data with EOF": iotest.DataErrReader(strings.NewReader(in)),
	}
	for name, r := range readers {
		got := readAll(t, NewReader(r, 0))
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestReaderBackend(t *testing.T) {
	in := strings.Join([]string{
		"Server listening on stdio",
		"[INFO] ready",
		"\xef\xbb\xbf" + `{"jsonrpc":"2.0","id":1,"result":{}}`,
		"{ debug: true }",
		`{"level":"error","error":"boom"}`,
		`{"level":"info","id":5,"msg":"x"}`,
		`{"jsonrpc":"2.0","id":6}`,
		`{"id":7,"result":null}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":8,"result":{"a":tru}}`,
		`[{"jsonrpc":"2.0","id":9,"result":{}},3,{"jsonrpc":"2.0","id":10,"result":{}}]`,
		`[1,2]`,
		"100%",
	}, "\n") + "\n"
	want := []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		"bad -32600 id=6",
		`{"id":7,"result":null}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"m"}}`,
		"bad -32700 id=8",
		`{"jsonrpc":"2.0","id":9,"result":{}}`,
		`{"jsonrpc":"2.0","id":10,"result":{}}`,
	}
	r := NewBackendReader(strings.NewReader(in), 0)
	got := readAll(t, r)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
	if r.Noise() != 8 {
		t.Errorf("noise %d", r.Noise())
	}
}

func TestReaderTooLong(t *testing.T) {
	const max = 200_000
	pad := strings.Repeat("x", max)
	exact := `{"method":"` + strings.Repeat("y", max-13) + `"}`
	lines := []string{
		`{"id":1,"method":"` + pad + `"}`,
		exact,
		`{"result":{"id":7,"t":"\"id\":8,` + pad + `","n":[{"id":9}]},"jsonrpc":"2.0","id": "last" }`,
		pad,
		`{"id":2,"method":"fine"}`,
		`{"method":"` + pad + `","id":` + strings.Repeat("1", 5000) + `}`,
	}
	want := []string{"bad -32600 id=1", exact, `bad -32600 id="last"`, "bad -32600 id=", `{"id":2,"method":"fine"}`, "bad -32600 id="}
	for _, end := range []string{"\n", ""} {
		got := readAll(t, NewReader(strings.NewReader(strings.Join(lines, "\n")+end), max))
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("got %.80q", got)
		}
	}
}

// endless gives n bytes of one line without a newline, then the rest.
type endless struct {
	n    int
	rest io.Reader
}

func (e *endless) Read(p []byte) (int, error) {
	if e.n == 0 {
		return e.rest.Read(p)
	}
	p = p[:min(len(p), e.n)]
	for i := range p {
		p[i] = 'x'
	}
	e.n -= len(p)
	return len(p), nil
}

func TestReaderSkipsInBoundedMemory(t *testing.T) {
	const max, long = 1 << 20, 64 << 20
	head := strings.NewReader(`{"id":1,"method":"`)
	tail := strings.NewReader("\"}\n{\"id\":2,\"method\":\"m\"}\n")
	r := NewReader(io.MultiReader(head, &endless{long, tail}), max)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := readAll(t, r)
	runtime.ReadMemStats(&after)
	if len(got) != 2 || got[0] != "bad -32600 id=1" {
		t.Errorf("got %q", got)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16*max {
		t.Errorf("%d bytes were allocated for a line of %d with a bound of %d", used, long, max)
	}
}

func TestReaderBrokenStream(t *testing.T) {
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader(`{"id":1`), iotest.ErrReader(broken)), 0)
	if _, err := r.Next(); err != broken {
		t.Errorf("got %v", err)
	}
}

func TestBigMessages(t *testing.T) {
	for _, size := range []int{1 << 20, 17 << 20} {
		raw := `{"jsonrpc":"2.0","id":1,"result":{"text":"` + strings.Repeat("é", size/2) + `"}}`
		var out bytes.Buffer
		if err := NewWriter(&out).Write([]byte(raw)); err != nil {
			t.Fatal(err)
		}
		m, err := NewReader(&out, 0).Next()
		if err != nil || string(m.Raw) != raw {
			t.Errorf("a message of %d bytes did not pass: %v", len(raw), err)
		}
	}
}

func TestWriterIsOneWriteALine(t *testing.T) {
	var out countingWriter
	w := NewWriter(&out)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				if err := w.Write(Reply(IntID(int64(i)), []byte("{\r\n \"a\":\n1}"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if out.writes != 400 {
		t.Errorf("%d writes for 400 messages", out.writes)
	}
	r := NewReader(&out.Buffer, 0)
	for range 400 {
		if m, err := r.Next(); err != nil || string(m.Result) != "{   \"a\": 1}" {
			t.Fatalf("%s: %v", m.Raw, err)
		}
	}
}

type countingWriter struct {
	bytes.Buffer
	writes int
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.writes++
	return c.Buffer.Write(p)
}

func TestWriterStaysBroken(t *testing.T) {
	r, pipe := io.Pipe()
	r.Close()
	w := NewWriter(pipe)
	if w.Err() != nil {
		t.Error("broken before the first write")
	}
	first := w.Write([]byte("{}"))
	if first == nil || w.Write([]byte("{}")) != first || w.Err() != first {
		t.Errorf("first failure %v, then %v", first, w.Err())
	}
}

// However a stream is cut into reads, the same messages come out, and each is
// a line of the input.
func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"id\":1,\"method\":\"a\"}\r\n[]\n\n{\"id\":\"é\",\"result\":null}"), 40)
	f.Add([]byte("\xef\xbb\xbf{\"id\":1,\"method\":\"a\"}\nnoise\n{\"id\":2"), 8)
	f.Fuzz(func(t *testing.T, in []byte, max int) {
		max = 1 + (max&0xffff)%4096
		for _, backend := range []bool{false, true} {
			whole := readAll(t, newReader(bytes.NewReader(in), max, backend))
			bytewise := readAll(t, newReader(iotest.OneByteReader(bytes.NewReader(in)), max, backend))
			if strings.Join(whole, "\n") != strings.Join(bytewise, "\n") {
				t.Fatalf("%q, byte by byte %q", whole, bytewise)
			}
			for _, line := range whole {
				if !strings.HasPrefix(line, "bad ") && !bytes.Contains(in, []byte(line)) {
					t.Errorf("%q is not in the input", line)
				}
			}
		}
	})
}
