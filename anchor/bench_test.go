package anchor_test

import (
	"bufio"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/receipts"
)

// BenchmarkVerify verifies a folder of b.N receipts; with
// -benchtime=1000000x that is the million the memory bound speaks of.
func BenchmarkVerify(b *testing.B) {
	dir := b.TempDir()
	m := makeChain(b, "a.invalid", "k")
	file := writeChain(b, dir, m, b.N)
	r, err := chain.OpenReader(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(file / int64(b.N))
	b.ResetTimer()
	rep := anchor.Verify(anchor.Source{Chain: r}, anchor.Trust{Origin: m.origin})
	b.StopTimer()
	if rep.Exit != 2 || rep.Receipts != uint64(b.N) {
		b.Fatal(text(rep))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "receipts/s")
}

// writeChain writes n lines as a chain's folder has them, one decision after
// another.
func writeChain(b *testing.B, dir string, m *madeChain, n int) int64 {
	if err := os.MkdirAll(filepath.Join(dir, "chain"), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "FORMAT"), []byte("tool-guardian/evidence/1\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "chain", "00000000000000000000.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	line, size := m.lines[0], int64(0)
	c := common()
	for i := 0; ; {
		if _, err := w.Write(append(line, '\n')); err != nil {
			b.Fatal(err)
		}
		size += int64(len(line)) + 1
		if i++; i == n {
			break
		}
		c.Time.Wall = c.Time.Wall.Add(time.Millisecond)
		call := receipts.Call{ID: receipts.NewID(c.Time.Wall), Server: "files", Tool: "read", RPC: []byte("1")}
		r := receipts.NewDecision(c, receipts.Decision{Call: call, Effect: "allow", Mode: receipts.ModeEnforced},
			receipts.Commit(receipts.FieldArgsSent, [32]byte{1}, []byte(`{}`)))
		if i%2 == 0 {
			r = receipts.NewOutcome(c, receipts.Outcome{Call: call, Status: receipts.StatusOK})
		}
		if line, err = receipts.Seal(r, receipts.Link{Origin: m.origin, Seq: uint64(i), Prev: sha256.Sum256(line)}, m.key); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return size
}
