package anchor

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"toolguardian/chain"
)

// FuzzLines judges any bytes as a chain's lines: no panic, and no PASS. The
// judge hashes with a fresh seed, so coverage varies: fuzz it with
// -fuzzminimizetime=1x.
func FuzzLines(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "rotated.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte("\n"))
	f.Add(b)
	f.Add(bytes.Join(append(lines[2:], lines...), nil))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := newVerdict("fuzz", "", Trust{})
		j := newLineJudge(v, []mark{{size: 2}, {size: 1}})
		var all []parsed
		for i, l := range bytes.Split(b, []byte("\n")) {
			all = append(all, parsed{line: chain.Line{Seq: uint64(i), Bytes: l}})
		}
		in, stop := make(chan []parsed, 1), make(chan struct{})
		in <- all
		close(in)
		for batch := range judgeAhead(in, stop) {
			j.take(batch)
		}
		j.finish()
		v.chainAgainst(Source{}, j, nil, keyring{origin: j.origin, keys: j.headKeys, known: j.next})
		r := v.close()
		if r.Exit == ExitPass {
			t.Errorf("passed without a witness: %q", b)
		}
		if err := r.WriteText(io.Discard); err != nil {
			t.Error(err)
		}
	})
}
