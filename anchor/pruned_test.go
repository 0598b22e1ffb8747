package anchor_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"toolguardian/anchor"
	"toolguardian/chain"
)

// prunedWorld is a chain with a rotation of which all but the last witnessed
// receipts were pruned, and which went on and was witnessed again.
func prunedWorld(t *testing.T) (r *rig, c *chain.Chain, first uint64) {
	t.Helper()
	r = newRig(t)
	c = openChain(t, filepath.Join(t.TempDir(), "evidence"))
	enroll(t, c, r)
	record(t, c, 10)
	rotate(t, c)
	record(t, c, 10)
	stop := stream(t, c)
	until(t, "the chain is witnessed", witnessed(t, c.Dir(), sizeOf(t, c.Dir())))
	covered, err := anchor.WitnessedByAll(c.Dir())
	if err != nil {
		t.Fatal(err)
	}
	first, _, err = c.Prune(t.Context(), covered-3, covered)
	if err != nil {
		t.Fatal(err)
	}
	record(t, c, 2)
	until(t, "the pruned chain is witnessed", witnessed(t, c.Dir(), sizeOf(t, c.Dir())))
	stop()
	return r, c, first
}

// A pruned chain passes against its witness, and what is kept can be proved
// (E72).
func TestPrunedChainVerifies(t *testing.T) {
	r, c, first := prunedWorld(t)
	s := r.stamped(c.Origin())
	rep := verifyDir(t, c.Dir(), s, r.trust(c.HeadKey()))
	// The genesis and the rotation stay.
	if rep.Exit != 0 || rep.Counts["pruned"] != int64(first)-2 || rep.Receipts != sizeOf(t, c.Dir()) {
		t.Fatalf("%s %s, %d pruned of %d", rep.Verdict, reasons(rep), rep.Counts["pruned"], first)
	}
	reader, err := chain.OpenReader(c.Dir())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := anchor.ReadTree(reader, rep.Witnessed)
	if err != nil {
		t.Fatal(err)
	}
	for _, lines := range []anchor.ProvedLines{c, tree} {
		container, err := anchor.BuildProof(lines, first+1, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if rep := anchor.Verify(anchor.Source{Container: container.Bytes()}, r.trust(c.HeadKey())); rep.Exit != 0 {
			t.Errorf("proof of receipt %d: %s %s", first+1, rep.Verdict, reasons(rep))
		}
	}
}

// What a prune receipt does not tell of is missing, whatever the folder says.
func TestPrunedChainTampered(t *testing.T) {
	r, c, first := prunedWorld(t)
	s, trust := r.stamped(c.Origin()), r.trust(c.HeadKey())
	for name, change := range map[string]func(dir string){
		"a rotation is taken away": func(dir string) { remove(t, dir, "chain/00000000000000000021.jsonl") },
		"a hash is changed": func(dir string) {
			flip(t, filepath.Join(dir, "chain", "tiles", "tile", "0", "000.p", num(first)))
		},
		"the folder says nothing": func(dir string) { remove(t, dir, "chain/PRUNED") },
		"the folder says more": func(dir string) {
			name := filepath.Join(dir, "chain", "PRUNED")
			replaceIn(t, name, `"first":`+num(first), `"first":`+num(first+2))
		},
	} {
		dir := filepath.Join(t.TempDir(), "copy")
		copyTree(t, c.Dir(), dir)
		change(dir)
		if rep := verifyDir(t, dir, s, trust); rep.Exit != 1 {
			t.Errorf("%s: %s %s", name, rep.Verdict, reasons(rep))
		}
	}
}

// Receipts that no head covers may not be pruned: verify says so.
func TestPrunedBeyondTheWitness(t *testing.T) {
	r := newRig(t)
	c := openChain(t, filepath.Join(t.TempDir(), "evidence"))
	enroll(t, c, r)
	record(t, c, 3)
	stop := stream(t, c)
	until(t, "the chain is witnessed", witnessed(t, c.Dir(), sizeOf(t, c.Dir())))
	stop()
	record(t, c, 5)
	size := sizeOf(t, c.Dir())
	if _, _, err := c.Prune(t.Context(), size, size); err != nil { // as if it were witnessed
		t.Fatal(err)
	}
	if rep := verifyDir(t, c.Dir(), r.stamped(c.Origin()), r.trust(c.HeadKey())); rep.Exit != 2 || reasons(rep) != "UNPROTECTED" {
		t.Errorf("%s %s", rep.Verdict, reasons(rep))
	}
}

func remove(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
		t.Fatal(err)
	}
}

func num(n uint64) string { return strconv.FormatUint(n, 10) }

func flip(t *testing.T, name string) {
	t.Helper()
	change(t, name, func(b []byte) { b[40] ^= 1 })
}

func replaceIn(t *testing.T, name, old, with string) {
	t.Helper()
	change(t, name, func(b []byte) {
		i := bytes.Index(b, []byte(old))
		if i < 0 || len(old) != len(with) {
			t.Fatalf("%s holds no %s", name, old)
		}
		copy(b[i:], with)
	})
}

func change(t *testing.T, name string, f func([]byte)) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f(b)
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
