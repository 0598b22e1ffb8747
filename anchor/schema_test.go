package anchor_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
)

// reportSchema is the published form of a report.
func reportSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "testdata", "report.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func checkSchema(t testing.TB, s *jsonschema.Schema, r anchor.Report) {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestReportSchema(t *testing.T) {
	s := reportSchema(t)
	w := newWorld(t)
	one, two := uint64(1), uint64(2)
	src := anchor.Source{Target: "made", Chain: makeChain(t, "a.invalid", "k"), From: &one, To: &two}
	for _, r := range []anchor.Report{
		verifyDir(t, w.dir, w.snapshot, w.trust()),
		verifyDir(t, w.dir, w.snapshot, anchor.Trust{}),
		verifyDir(t, w.copyWith(t, func(l [][]byte) []byte { l[5] = flipped(l[5]); return joined(l[:9]) }), w.snapshot, w.trust()),
		w.judge(w.proved(t, 5).Bytes()),
		w.judge([]byte("x")),
		anchor.Verify(src, anchor.Trust{Now: time.Now()}),
	} {
		checkSchema(t, s, r)
	}
	bad := w.judge([]byte("x"))
	bad.Verdict = "MAYBE"
	b, err := json.Marshal(bad)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if s.Validate(v) == nil {
		t.Error("the schema takes any verdict")
	}
}

// Text for people: short names, nothing said twice, what was not checked and
// what is not proved at the end.
func TestReportText(t *testing.T) {
	w := newWorld(t)
	s := text(verifyDir(t, w.dir, w.snapshot, w.trust()))
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	seen := map[string]bool{}
	for _, l := range lines {
		if seen[l] {
			t.Errorf("said twice: %s", l)
		}
		seen[l] = true
		if len(l) > 260 {
			t.Errorf("a long line: %s", l)
		}
	}
	if strings.Contains(s, w.key.String()) || strings.Count(s, w.origin) != 1 {
		t.Error("keys and the origin are written out:\n" + s)
	}
	last := -1
	for _, part := range []string{"PASS  ", "  existed by 20", "self-issued: no independent evidence", "\n  key ", "PINNED, in force by leaf",
		"What was checked:", "What was not checked:", "What this does not prove:"} {
		i := strings.Index(s, part)
		if i < 0 || i < last {
			t.Errorf("%q is not in its place:\n%s", part, s)
		}
		last = i
	}
}

func TestMaxAge(t *testing.T) {
	w := newWorld(t)
	tr := w.trust()
	tr.MaxAge = time.Hour
	if r := verifyDir(t, w.dir, w.snapshot, tr); r.Exit != 0 {
		t.Error(text(r))
	}
	tr.Now = tr.Now.Add(2 * time.Hour)
	if r := verifyDir(t, w.dir, w.snapshot, tr); r.Exit != 2 || reasons(r) != "UNPROTECTED" || *r.Key.AgeSeconds < 7000 {
		t.Error(text(r))
	}
	if r := anchor.Verify(anchor.Source{Container: w.proved(t, 5).Bytes()}, tr); r.Exit != 2 || reasons(r) != "UNPROTECTED" {
		t.Error(text(r))
	}
	tr.WitnessKeys, tr.TSARoots = nil, nil
	if r := verifyDir(t, w.dir, w.snapshot, tr); r.Exit != 2 || !strings.Contains(text(r), "--max-age cannot be judged") {
		t.Error(text(r))
	}
}

// A part of a chain passes only where a root that equals a witnessed one covers
// it, whatever is wrong elsewhere.
func TestPartOfChain(t *testing.T) {
	w := newWorld(t)
	verify := func(dir string, from, to uint64) anchor.Report {
		t.Helper()
		return verifyPart(t, dir, w, from, to)
	}
	if r := verify(w.dir, 3, 5); r.Exit != 0 {
		t.Error(text(r))
	}
	if r := verify(w.dir, 3, w.covered-1); r.Exit != 0 {
		t.Error(text(r))
	}
	for _, first := range []uint64{3, w.covered} { // the tail, when it is asked about
		r := verify(w.dir, first, w.covered)
		if r.Exit != 2 || reasons(r) != "UNPROTECTED" || *r.Reasons[0].Index != w.covered || *r.Reasons[0].To != w.covered {
			t.Error(text(r))
		}
	}
	late := w.copyWith(t, func(l [][]byte) []byte { l[w.covered+2] = flipped(l[w.covered+2]); return joined(l) })
	if r := verify(late, 3, 5); r.Exit != 0 || len(r.Outside) != 1 {
		t.Error(text(r))
	}
	if r := verify(late, 3, w.covered+2); r.Exit != 1 || reasons(r) != "ALTERED" {
		t.Error(text(r))
	}
	// A change elsewhere keeps the root from being compared: it must not hide
	// receipts replaced in the part.
	early := w.copyWith(t, func(l [][]byte) []byte { l[2] = flipped(l[2]); return joined(l) })
	if r := verify(early, 5, 8); r.Exit != 2 || reasons(r) != "UNPROTECTED" {
		t.Error(text(r))
	}
	if r := verify(w.dir, 3, w.size); r.Exit != 1 || reasons(r) != "ABSENT" {
		t.Error(text(r))
	}
}

func verifyPart(t testing.TB, dir string, w *world, from, to uint64) anchor.Report {
	t.Helper()
	rd, err := chain.OpenReader(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	return anchor.Verify(anchor.Source{Target: dir, Chain: rd, Witness: w.snapshot, From: &from, To: &to}, w.trust())
}

// A checkpoint that the chain alone signed shows nothing to a stranger, under
// whatever policy.
func TestPolicyThatAsksForNobody(t *testing.T) {
	w := newWorld(t)
	tr := w.trust()
	tr.ChainPolicy = policy(t, "log "+w.key.String()+"\nquorum none\n")
	rd, err := chain.OpenReader(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	own := signNote(t, w, rootAt(t, w, w.size))
	r := anchor.Verify(anchor.Source{Target: w.dir, Chain: rd, Checkpoint: own}, tr)
	if r.Exit != 2 || r.Witnessed != 0 || reasons(r) != "UNPROTECTED" {
		t.Error(text(r))
	}
}

// rootAt is the chain's own checkpoint at a size.
func rootAt(t testing.TB, w *world, size uint64) tlog.Checkpoint {
	t.Helper()
	rd, err := chain.OpenReader(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	var tree tlog.Frontier
	for line, err := range rd.Lines(0) {
		if err != nil {
			t.Fatal(err)
		}
		if tree.Size() < size {
			tree.Append(tlog.LeafHash(line.Bytes))
		}
	}
	return tlog.Checkpoint{Origin: w.origin, Size: tree.Size(), Root: tree.Root()}
}

// A report on an anchor file with many heads stays a report.
func TestReportOnManyHeads(t *testing.T) {
	w := newWorld(t)
	rd, err := chain.OpenReader(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	var tree tlog.Frontier
	var flat []byte
	for line, err := range rd.Lines(0) {
		if err != nil {
			t.Fatal(err)
		}
		tree.Append(tlog.LeafHash(line.Bytes))
		head, err := anchor.FlatLine(signNote(t, w, tlog.Checkpoint{Origin: w.origin, Size: tree.Size(), Root: tree.Root()}))
		if err != nil {
			t.Fatal(err)
		}
		flat = append(append(flat, head...), '\n')
	}
	tr := w.trust()
	tr.ChainPolicy = policy(t, "log "+w.key.String()+"\nquorum none\n")
	r := anchor.Verify(anchor.Source{Target: w.dir, Chain: rd, Flat: flat}, tr)
	if r.Exit != 0 || r.Witnessed != w.size || !strings.Contains(text(r), "head of size 1 to 27 (27 of them) signed by the chain's key") {
		t.Error(text(r))
	}
	if n := strings.Count(text(r), "\n"); n > 40 {
		t.Errorf("%d lines", n)
	}
}
