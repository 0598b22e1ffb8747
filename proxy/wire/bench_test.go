package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

// sizes of a result: a short answer, a file, a large listing.
var sizes = []int{100, 10_000, 1_000_000}

func resultOf(size int) []byte {
	line := `{\"path\": \"src/main.go\", \"lines\": 120}\n`
	text := strings.Repeat(line, size/len(line)+1)
	return Reply(IntID(12), json.RawMessage(`{"content":[{"type":"text","text":"`+text+`"}],"isError":false}`))
}

func bySize(b *testing.B, run func(b *testing.B, raw []byte)) {
	for _, size := range sizes {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			raw := resultOf(size)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			run(b, raw)
		})
	}
}

// repeat is a stream of one line over and over.
type repeat struct {
	line []byte
	at   int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.line[r.at:])
	r.at = (r.at + n) % len(r.line)
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	bySize(b, func(b *testing.B, raw []byte) {
		r := NewReader(&repeat{line: append(raw, '\n')}, 0)
		for b.Loop() {
			if _, err := r.Next(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What decoding alone would cost, for the ratio.
func BenchmarkDecodeForComparison(b *testing.B) {
	bySize(b, func(b *testing.B, raw []byte) {
		for b.Loop() {
			var m struct {
				ID     json.RawMessage
				Result json.RawMessage
			}
			if err := json.Unmarshal(raw, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	bySize(b, func(b *testing.B, raw []byte) {
		w := NewWriter(io.Discard)
		for b.Loop() {
			if err := w.Write(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkWithID(b *testing.B) {
	bySize(b, func(b *testing.B, raw []byte) {
		m, err := Parse(raw)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if len(m.WithID(IntID(7))) == 0 {
				b.Fatal("empty")
			}
		}
	})
}

func BenchmarkSetProgressToken(b *testing.B) {
	params := json.RawMessage(`{"name":"read_file","arguments":{"path":"` + strings.Repeat("a/", 200) + `"},"_meta":{"progressToken":"abc"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := SetProgressToken(params, IntID(7)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckStrict(b *testing.B) {
	raw := NewRequest(IntID(1), "tools/call", json.RawMessage(`{"name":"t","arguments":`+string(bytes.TrimSpace(resultOf(400)))+`}`))
	m, err := Parse(raw)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := CheckStrict(m); err != nil {
			b.Fatal(err)
		}
	}
}
