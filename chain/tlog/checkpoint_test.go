package tlog_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"

	"toolguardian/chain/tlog"
)

// The example of C2SP tlog-cosignature.
const specCheckpoint = `example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
`

func TestCheckpointExample(t *testing.T) {
	c, n, err := tlog.ParseSignedCheckpoint([]byte(specCheckpoint))
	if err != nil {
		t.Fatal(err)
	}
	if c.Origin != "example.com/behind-the-sofa" || c.Size != 20852163 || c.Root.Base64() != "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=" {
		t.Errorf("read as %+v", c)
	}
	sameBytes(t, n.Text, c.Text())
	if _, timed := n.Signatures[0].Time(); timed {
		t.Error("a type 01 signature states a time")
	}
	// The page's signed message states this time.
	if at, timed := n.Signatures[1].Time(); !timed || !at.Equal(time.Unix(1679315147, 0)) {
		t.Errorf("cosigned at %v", at)
	}
}

func TestBadCheckpoint(t *testing.T) {
	root := tlog.LeafHash(nil).Base64()
	for name, s := range map[string]string{
		"empty":              "",
		"two lines":          "o\n1\n",
		"no last newline":    "o\n1\n" + root,
		"extension":          "o\n1\n" + root + "\nmore\n",
		"empty extension":    "o\n1\n" + root + "\n\n",
		"no origin":          "\n1\n" + root + "\n",
		"space in origin":    "o o\n1\n" + root + "\n",
		"DSSE's domain":      "DSSEv1 28 application/vnd.in-toto+json\n1\n" + root + "\n",
		"plus in origin":     "o+o\n1\n" + root + "\n",
		"leading zeros":      "o\n007\n" + root + "\n",
		"sign":               "o\n+1\n" + root + "\n",
		"negative":           "o\n-1\n" + root + "\n",
		"space before size":  "o\n 1\n" + root + "\n",
		"hex size":           "o\n0x1\n" + root + "\n",
		"underscore":         "o\n1_0\n" + root + "\n",
		"size 2^63":          "o\n9223372036854775808\n" + root + "\n",
		"short root":         "o\n1\nAAAA\n",
		"CR in root":         "o\n1\n" + root[:9] + "\r" + root[9:] + "\n",
		"CR after root":      "o\n1\n" + root + "\r\n",
		"space after root":   "o\n1\n" + root + " \n",
		"unpadded root":      "o\n1\n" + strings.TrimRight(root, "=") + "\n",
		"empty tree's size":  "o\n0\n" + root + "\n",
		"other decimal size": "o\n١\n" + root + "\n",
	} {
		if c, err := tlog.ParseCheckpoint([]byte(s)); err == nil {
			t.Errorf("%s: accepted as %+v", name, c)
		}
	}
	if c, err := tlog.ParseCheckpoint([]byte("o\n9223372036854775807\n" + root + "\n")); err != nil || c.Size != tlog.MaxSize {
		t.Errorf("size 2^63-1: %v", err)
	}
}

// TestCheckpointsAgainstSumdb: sumdb/note opens a cosigned checkpoint, and
// sumdb/tlog reads the same size and root where the origin is its own.
func TestCheckpointsAgainstSumdb(t *testing.T) {
	log := testSigner(t, "log.example", tlog.KeyEd25519)
	c := tlog.Checkpoint{Origin: "log.example", Size: 7, Root: tlog.LeafHash(nil)}
	n := signedBy(t, c.Text(), log, testSigner(t, "witness.example/w", tlog.KeyCosignature))
	v, err := note.NewVerifier(log.Vkey().String())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := note.Open(n.Bytes(), note.VerifierList(v))
	if err != nil || opened.Text != string(c.Text()) || len(opened.UnverifiedSigs) != 1 {
		t.Fatalf("sumdb/note: %v", err)
	}
	c.Origin = "go.sum"
	text := bytes.Replace(c.Text(), []byte("go.sum"), []byte("go.sum database tree"), 1)
	tree, err := sumdb.ParseTree(text)
	if err != nil || tree.N != 7 || tlog.Hash(tree.Hash) != c.Root {
		t.Errorf("sumdb/tlog: %v, %v", tree, err)
	}
}

func TestEmptyTreeRootIsTold(t *testing.T) {
	n := tlog.Note{Text: []byte("o\n0\n" + tlog.LeafHash(nil).Base64() + "\n"), Signatures: []tlog.Signature{{Name: "o", Bytes: []byte("x")}}}
	if _, _, err := tlog.ParseSignedCheckpoint(n.Bytes()); !errors.Is(err, tlog.ErrEmptyTreeRoot) {
		t.Error(err)
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte("example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"))
	f.Add([]byte("o\n0\n" + tlog.EmptyRoot().Base64() + "\n"))
	f.Add([]byte("o\n007\nAAAA\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := tlog.ParseCheckpoint(b)
		if err != nil {
			return
		}
		sameBytes(t, b, c.Text())
		if c.Size > tlog.MaxSize || !tlog.ValidName(c.Origin) {
			t.Fatalf("accepted %+v", c)
		}
	})
}
