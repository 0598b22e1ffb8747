package anchor_test

import (
	"bytes"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/proof"
	merkle "github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
	sumdb "golang.org/x/mod/sumdb/tlog"
)

// An outsider checks a container with none of our code: sections cut by hand,
// proofs read by one library, trees and notes by two others, the token by
// openssl.
func TestOutsiderChecksContainer(t *testing.T) {
	w := newWorld(t)
	sections := cut(t, w.proved(t, 5).Bytes())
	log, cosigner := w.rig.server.Vkeys()

	chainRoot := outsiderProof(t, sections["head"], sections["receipt"])
	if note := opened(t, chainRoot.note, w.key.String()); !strings.HasPrefix(note.Text, w.origin+"\n") {
		t.Errorf("head %q", note.Text)
	}
	leaf := outsiderProof(t, sections["leaf"], sections["leaf-bytes"])
	stamped := opened(t, leaf.note, log.String())

	// The leaf's body is the head, by its first three lines and both signatures.
	_, body, _ := bytes.Cut([]byte(sections["leaf-bytes"]), []byte("\n\n"))
	if !bytes.HasPrefix(body, []byte(opened(t, chainRoot.note, w.key.String()).Text)) {
		t.Error("the leaf holds another head")
	}
	if !strings.Contains(string(body), "— "+cosigner.Name+" ") {
		t.Error("the leaf holds no cosignature")
	}
	outsiderProof(t, sections["key/1"], sections["key-bytes/1"])
	opensslChecksToken(t, w, stamped, sections["time/1"])
}

// cut reads `name length`, bytes, newline by hand.
func cut(t *testing.T, b []byte) map[string]string {
	t.Helper()
	first, rest, _ := strings.Cut(string(b), "\n")
	if first != "tool-guardian/proof/v1" {
		t.Fatalf("first line %q", first)
	}
	out := map[string]string{}
	for rest != "" {
		head, after, _ := strings.Cut(rest, "\n")
		name, length, _ := strings.Cut(head, " ")
		n := 0
		for _, c := range length {
			n = n*10 + int(c-'0')
		}
		out[name], rest = after[:n], after[n+1:]
	}
	return out
}

type outsiderRoot struct{ note []byte }

// outsiderProof checks that data is a leaf of the tree in a tlog-proof, with
// two libraries that do not know of each other.
func outsiderProof(t *testing.T, section, data string) outsiderRoot {
	t.Helper()
	var p proof.TLogProof
	if err := p.Unmarshal([]byte(section)); err != nil {
		t.Fatal(err)
	}
	tree, err := sumdb.ParseTree(append([]byte("go.sum database tree\n"), afterLine(p.Checkpoint)...))
	if err != nil {
		t.Fatal(err)
	}
	var path [][]byte
	var record sumdb.RecordProof
	for _, h := range p.Hashes {
		path, record = append(path, h[:]), append(record, sumdb.Hash(h))
	}
	leaf := rfc6962.DefaultHasher.HashLeaf([]byte(data))
	if err := merkle.VerifyInclusion(rfc6962.DefaultHasher, p.Index, uint64(tree.N), leaf, path, tree.Hash[:]); err != nil {
		t.Error(err)
	}
	if err := sumdb.CheckRecord(record, tree.N, tree.Hash, int64(p.Index), sumdb.RecordHash([]byte(data))); err != nil {
		t.Error(err)
	}
	return outsiderRoot{note: p.Checkpoint}
}

// afterLine drops the origin and keeps size and root, which is what a sumdb
// tree has too.
func afterLine(checkpoint []byte) []byte {
	text, _, _ := bytes.Cut(checkpoint, []byte("\n\n"))
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	return append(bytes.Clone(rest), '\n')
}

func opened(t *testing.T, b []byte, vkey string) *note.Note {
	t.Helper()
	v, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	n, err := note.Open(b, note.VerifierList(v))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func opensslChecksToken(t *testing.T, w *world, n *note.Note, section string) {
	t.Helper()
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	_, token, _ := strings.Cut(section, "\n\n")
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	n.UnverifiedSigs = nil // the stamped note has the log's line alone
	stamped, err := note.Sign(n)
	if err != nil {
		t.Fatal(err)
	}
	der := filepath.Join(dir, "token.der")
	decode := exec.Command(openssl, "base64", "-d", "-A", "-in", write("token.b64", []byte(token)), "-out", der)
	if out, err := decode.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	verify := func(data []byte) error {
		return exec.Command(openssl, "ts", "-verify", "-token_in", "-in", der, "-data", write("note", data), "-CAfile", write("ca.pem", w.rig.ca)).Run()
	}
	if err := verify(stamped); err != nil {
		t.Errorf("openssl refuses the token over the stamped note: %v", err)
	}
	if verify(append(stamped, '\n')) == nil {
		t.Error("openssl accepts the token over another note")
	}
	sum := sha256.Sum256(stamped)
	if !bytes.Contains(w.snapshot.Stamped.Times[0].Token, sum[:]) {
		t.Error("the imprint is not the SHA-256 of the stamped note")
	}
}
