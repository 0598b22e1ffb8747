package anchor_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
	"toolguardian/tsa"
	"toolguardian/witness/api"
)

// frozenDir holds public vectors. A file there is never edited: a later release
// adds a folder.
var frozenDir = filepath.Join("..", "testdata", "frozen")

// frozenSet is EXPECTED.json: what the vectors of one folder pin, and the
// verdict on each.
type frozenSet struct {
	Now     time.Time         `json:"now"` // the auditor's clock
	Keys    map[string]string `json:"keys"`
	Vectors []frozenVector    `json:"vectors"`
	Leaves  []frozenLeaf      `json:"leaves"`
}

// frozenVector names what is verified, held against what, with which pins.
type frozenVector struct {
	Name       string   `json:"name"`
	Chain      string   `json:"chain,omitempty"` // folder of a chain
	Lines      *string  `json:"lines,omitempty"` // the lines that replace the folder's; "" for none
	Container  string   `json:"container,omitempty"`
	Checkpoint string   `json:"checkpoint,omitempty"`
	Flat       string   `json:"flat,omitempty"`
	Snapshot   string   `json:"snapshot,omitempty"` // what a witness answered, as JSON of anchor.Snapshot
	Pins       []string `json:"pins"`               // names of keys; "tsa" is the root
	Salts      bool     `json:"salts,omitempty"`    // the folder's salts are looked at
	MaxLag     *uint64  `json:"maxLag,omitempty"`
	Verdict    string   `json:"verdict"`
	Exit       int      `json:"exit"`
	Reasons    []string `json:"reasons"` // in the order of the report, "WORD" or "WORD index"
}

// frozenLeaf is an entry of the witness log.
type frozenLeaf struct {
	File string `json:"file"`
	Type string `json:"type"`
	Hash string `json:"hash"`
}

func readFrozen(t testing.TB, dir string) frozenSet {
	t.Helper()
	var s frozenSet
	if err := json.Unmarshal(readFile(t, filepath.Join(dir, "EXPECTED.json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// trust is what a vector pins.
func (s frozenSet) trust(t testing.TB, dir string, v frozenVector) anchor.Trust {
	t.Helper()
	tr := anchor.Trust{Now: s.Now, MaxLag: v.MaxLag}
	for _, pin := range v.Pins {
		if pin == "tsa" {
			tr.TSARoots = x509.NewCertPool()
			tr.TSARoots.AppendCertsFromPEM(readFile(t, filepath.Join(dir, "time", "root.pem")))
			continue
		}
		k, err := tlog.ParseVkey(s.Keys[pin])
		if err != nil {
			t.Fatalf("pin %s: %v", pin, err)
		}
		if strings.Contains(k.Name, "/c/") {
			tr.ChainKeys = append(tr.ChainKeys, k)
		} else {
			tr.WitnessKeys = append(tr.WitnessKeys, k)
		}
	}
	return tr
}

// source reads what a vector is about.
func (v frozenVector) source(t testing.TB, dir string) anchor.Source {
	t.Helper()
	src := anchor.Source{Target: v.Name, Against: "the vector"}
	read := func(name string) []byte {
		if name == "" {
			return nil
		}
		return readFile(t, filepath.Join(dir, name))
	}
	src.Container, src.Checkpoint, src.Flat = read(v.Container), read(v.Checkpoint), read(v.Flat)
	if b := read(v.Snapshot); b != nil {
		src.Witness = &anchor.Snapshot{}
		if err := json.Unmarshal(b, src.Witness); err != nil {
			t.Fatal(err)
		}
	}
	if v.Chain == "" {
		return src
	}
	r, err := chain.OpenReader(v.folder(t, dir))
	if errors.Is(err, chain.ErrNoChain) {
		return src
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	src.Chain = r
	if v.Salts {
		src.Salts = r
	}
	return src
}

// folder is the vector's chain, with its lines replaced where it says so.
func (v frozenVector) folder(t testing.TB, dir string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "chain")
	copyTree(t, filepath.Join(dir, v.Chain), folder)
	if v.Lines == nil {
		return folder
	}
	segments, err := filepath.Glob(filepath.Join(folder, "chain", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range segments {
		if err := os.Remove(s); err != nil {
			t.Fatal(err)
		}
	}
	if *v.Lines == "" {
		return folder
	}
	first := filepath.Join(folder, "chain", fmt.Sprintf("%020d.jsonl", 0))
	if err := os.WriteFile(first, readFile(t, filepath.Join(dir, *v.Lines)), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// told lists a report's reasons as EXPECTED.json does.
func told(r anchor.Report) []string {
	out := []string{}
	for _, f := range r.Reasons {
		word := string(f.Reason)
		if f.Index != nil {
			word = fmt.Sprintf("%s %d", f.Reason, *f.Index)
		}
		out = append(out, word)
	}
	return out
}

func frozenFolders(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(frozenDir, "v*"))
	if err != nil || len(all) == 0 {
		t.Fatalf("no vectors under %s: %v", frozenDir, err)
	}
	return all
}

// Every vector that was ever published gets the verdict that was published.
func TestFrozen(t *testing.T) {
	schema := reportSchema(t)
	seen := map[string]bool{}
	for _, dir := range frozenFolders(t) {
		s := readFrozen(t, dir)
		for _, v := range s.Vectors {
			t.Run(filepath.Base(dir)+"/"+v.Name, func(t *testing.T) {
				r := anchor.Verify(v.source(t, dir), s.trust(t, dir, v))
				if r.Verdict != v.Verdict || r.Exit != v.Exit || !slices.Equal(told(r), v.Reasons) {
					t.Errorf("%s %d %q, want %s %d %q\n%s", r.Verdict, r.Exit, told(r), v.Verdict, v.Exit, v.Reasons, text(r))
				}
				checkSchema(t, schema, r)
			})
			for _, word := range v.Reasons {
				word, _, _ = strings.Cut(word, " ")
				seen[word] = true
			}
		}
	}
	for _, r := range anchor.Reasons() {
		if !seen[string(r)] && !notYet[r] {
			t.Errorf("no vector is refused for %s", r)
		}
	}
}

// notYet are the reasons that no verdict of this release rests on.
var notYet = map[anchor.Reason]bool{anchor.WitnessRollback: true, anchor.Doubtful: true}

// SHA256SUMS names every file of a folder: none is edited, added or removed.
func TestFrozenUntouched(t *testing.T) {
	for _, dir := range frozenFolders(t) {
		sums := string(readFile(t, filepath.Join(dir, "SHA256SUMS")))
		if got := sumsOf(t, dir); got != sums {
			t.Errorf("%s has changed: a published vector is never edited", dir)
		}
		total := 0
		for name := range strings.Lines(sums) {
			total += len(readFile(t, filepath.Join(dir, strings.TrimSpace(name[66:]))))
		}
		if total > 2<<20 {
			t.Errorf("%s holds %d bytes", dir, total)
		}
	}
}

// sumsOf lists a folder's files as sha256sum does.
func sumsOf(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "SHA256SUMS" {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(readFile(t, path)), filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The parts parse by themselves, and are written again byte for byte.
func TestFrozenParts(t *testing.T) {
	for _, dir := range frozenFolders(t) {
		s := readFrozen(t, dir)
		for _, l := range s.Leaves {
			b := readFile(t, filepath.Join(dir, l.File))
			leaf, err := api.ParseLeaf(b)
			if err != nil || string(leaf.Type) != l.Type || tlog.LeafHash(b).Hex() != l.Hash {
				t.Errorf("%s: %v, a %s leaf with hash %s", l.File, err, leaf.Type, tlog.LeafHash(b).Hex())
				continue
			}
			if again, err := leaf.Bytes(); err != nil || !bytes.Equal(again, b) {
				t.Errorf("%s is written differently: %v", l.File, err)
			}
		}
		frozenTime(t, dir, s)
		frozenOpening(t, dir)
	}
}

// frozenTime verifies the token, alone, over the note that it stamps.
func frozenTime(t *testing.T, dir string, s frozenSet) {
	t.Helper()
	roots := s.trust(t, dir, frozenVector{Pins: []string{"tsa"}}).TSARoots
	note := readFile(t, filepath.Join(dir, "time", "note"))
	token := readFile(t, filepath.Join(dir, "time", "token.der"))
	if _, err := tsa.Verify(token, tsa.VerifyOptions{Digest: sha256.Sum256(note), Roots: roots, Now: s.Now}); err != nil {
		t.Error(err)
	}
	if _, err := tsa.Verify(token, tsa.VerifyOptions{Digest: sha256.Sum256(append(note, '\n')), Roots: roots, Now: s.Now}); err == nil {
		t.Error("the token holds for another note")
	}
}

// frozenOpening checks that an opening is what its receipt commits to.
func frozenOpening(t *testing.T, dir string) {
	t.Helper()
	r, err := chain.OpenReader(filepath.Join(dir, "chain"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	line, err := r.Line(1)
	if err != nil {
		t.Fatal(err)
	}
	st, err := receipts.ParseStatement(payloadOf(t, line))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(readFile(t, filepath.Join(dir, "openings", "1.args_sent.open"))); st.Subjects[0].Digest != sum {
		t.Error("the opening is not what receipt 1 commits to")
	}
}
