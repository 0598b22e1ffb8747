package tlog_test

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/proof"

	"toolguardian/chain/tlog"
)

// testProof proves leaf i of a signed tree.
func testProof(tb testing.TB, i, size uint64) (tlog.Proof, tlog.Hash) {
	tb.Helper()
	tree := newTestTree(tb, int(size))
	path, err := tlog.ProveInclusion(i, size, tree.tiles)
	if err != nil {
		tb.Fatal(err)
	}
	c := tlog.Checkpoint{Origin: "log.example", Size: size, Root: tree.sumdbRoot(tb, size)}
	n := signedBy(tb, c.Text(), testSigner(tb, "log.example", tlog.KeyEd25519), testSigner(tb, "witness.example/w", tlog.KeyCosignature))
	return tlog.Proof{Index: i, Hashes: path, Checkpoint: n.Bytes()}, tree.leaves[i]
}

func TestProof(t *testing.T) {
	for _, c := range []struct{ index, size uint64 }{{0, 1}, {5, 6}, {300, 1000}} {
		p, leaf := testProof(t, c.index, c.size)
		parsed, err := tlog.ParseProof(p.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		sameBytes(t, p.Bytes(), parsed.Bytes())
		cp, n, err := parsed.Verify(leaf)
		if err != nil || cp.Size != c.size || len(n.Signatures) != 2 {
			t.Errorf("leaf %d of %d: %+v, %v", c.index, c.size, cp, err)
		}
		if _, _, err := parsed.Verify(tlog.LeafHash([]byte("another"))); err == nil {
			t.Errorf("leaf %d of %d: another leaf is proved", c.index, c.size)
		}
	}
}

func TestProofAgainstFormats(t *testing.T) {
	p, _ := testProof(t, 300, 1000)
	var theirs proof.TLogProof
	if err := theirs.Unmarshal(p.Bytes()); err != nil {
		t.Fatal(err)
	}
	same := slices.EqualFunc(p.Hashes, theirs.Hashes, func(a tlog.Hash, b [32]byte) bool { return a == b })
	if theirs.Index != 300 || !same || string(theirs.Checkpoint) != string(p.Checkpoint) || theirs.ExtraData != nil {
		t.Errorf("read as %+v", theirs)
	}
	sameBytes(t, theirs.Marshal(), p.Bytes())
}

func TestBadProof(t *testing.T) {
	p, _ := testProof(t, 5, 6)
	good := string(p.Bytes())
	hash := tlog.EmptyRoot().Base64() + "\n"
	for name, s := range map[string]string{
		"empty":                    "",
		"other version":            strings.Replace(good, "@v1", "@v2", 1),
		"extra":                    strings.Replace(good, "index", "extra "+base64.StdEncoding.EncodeToString([]byte("x"))+"\nindex", 1),
		"empty extra":              strings.Replace(good, "index", "extra \nindex", 1),
		"index 05":                 strings.Replace(good, "index 5", "index 05", 1),
		"index +5":                 strings.Replace(good, "index 5", "index +5", 1),
		"index two spaces":         strings.Replace(good, "index 5", "index  5", 1),
		"no index":                 strings.Replace(good, "index 5\n", "", 1),
		"two indexes":              strings.Replace(good, "index 5\n", "index 5\nindex 5\n", 1),
		"carriage return":          strings.Replace(good, "index 5\n", "index 5\r\n", 1),
		"short hash":               strings.Replace(good, "index 5\n", "index 5\nAAAA\n", 1),
		"64 hashes":                strings.Replace(good, "index 5\n", "index 5\n"+strings.Repeat(hash, 64), 1),
		"no empty line":            strings.Replace(good, "\n\nlog.example", "\nlog.example", 1),
		"two empty lines":          strings.Replace(good, "\n\nlog.example", "\n\n\nlog.example", 1),
		"unsigned checkpoint":      good[:strings.LastIndex(good, "\n\n")+2],
		"checkpoint with 06":       strings.Replace(good, "\n6\n", "\n06\n", 1),
		"checkpoint cut":           good[:len(good)-1],
		"bytes after the note":     good + "x",
		"leading newline":          "\n" + good,
		"note with an extra line":  strings.Replace(good, "\n6\n", "\n6\n6\n", 1),
		"space after the header":   strings.Replace(good, "@v1\n", "@v1 \n", 1),
		"newline inside of a hash": strings.Replace(good, "index 5\n", "index 5\n"+hash[:10]+"\n"+hash[10:], 1),
	} {
		if s == good {
			t.Fatalf("%s: the case does not differ", name)
		}
		if _, err := tlog.ParseProof([]byte(s)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzProof(f *testing.F) {
	p, leaf := testProof(f, 5, 6)
	f.Add(p.Bytes())
	f.Add([]byte("c2sp.org/tlog-proof@v1\nindex 0\n\no\n1\n" + leaf.Base64() + "\n\n— a AAAAAAA=\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := tlog.ParseProof(b)
		if err != nil {
			return
		}
		sameBytes(t, b, p.Bytes())
		if c, _, err := p.Verify(leaf); err == nil && p.Index >= c.Size {
			t.Fatalf("leaf %d proved in a tree of %d", p.Index, c.Size)
		}
		if len(b) > 64<<10 {
			return // longer lines than the other reader's buffer
		}
		var theirs proof.TLogProof
		if err := theirs.Unmarshal(b); err != nil || theirs.Index != p.Index {
			t.Fatalf("formats/proof reads %d, %v", theirs.Index, err)
		}
	})
}
