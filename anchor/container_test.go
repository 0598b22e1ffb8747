package anchor_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"toolguardian/anchor"
	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// proved builds the container of one receipt from a reader of the folder.
func (w *world) proved(t testing.TB, seq uint64, openings ...anchor.NamedOpening) anchor.Container {
	t.Helper()
	rd, err := chain.OpenReader(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := anchor.ReadTree(rd, w.covered)
	if err != nil {
		t.Fatal(err)
	}
	before := func(nb receipts.NotBefore) ([]byte, []byte) { return anchor.Before(w.dir, nb) }
	c, err := anchor.BuildProof(tree, seq, w.snapshot, before, openings...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) judge(b []byte) anchor.Report {
	return anchor.Verify(anchor.Source{Target: "proof", Container: b}, w.trust())
}

func TestContainer(t *testing.T) {
	w := newWorld(t)
	for _, seq := range []uint64{0, 1, 5, w.covered - 1} {
		b := w.proved(t, seq).Bytes()
		if r := w.judge(b); r.Exit != 0 || r.NotAfter == "" || r.Witnessed != 1 {
			t.Errorf("receipt %d\n%s", seq, text(r))
		}
		c, err := anchor.ParseContainer(b)
		if err != nil || !bytes.Equal(c.Bytes(), b) {
			t.Errorf("receipt %d: %v", seq, err)
		}
	}
	rd, err := chain.OpenReader(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := anchor.ReadTree(rd, w.size)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := anchor.BuildProof(tree, w.covered, w.snapshot, nil); err == nil {
		t.Error("a receipt that is not witnessed was proved")
	}
}

func TestContainerPins(t *testing.T) {
	w := newWorld(t)
	b := w.proved(t, 5).Bytes()
	tr := anchor.Trust{Now: time.Now()}
	if r := anchor.Verify(anchor.Source{Container: b}, tr); r.Exit != 2 || r.Verdict != anchor.VerdictUnpinned {
		t.Error(text(r))
	}
	tr = w.trust()
	tr.ChainKeys = nil
	if r := anchor.Verify(anchor.Source{Container: b}, tr); r.Exit != 2 || !strings.Contains(text(r), "enrolled by the witness, not pinned by you") {
		t.Error(text(r))
	}
}

func TestContainerAgainst(t *testing.T) {
	w := newWorld(t)
	b := w.proved(t, 5).Bytes()
	logCP, _, err := tlog.ParseSignedCheckpoint(w.snapshot.Stamped.Leaf.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	s := w.rig.snapshot(w.origin, logCP.Size)
	r := anchor.Verify(anchor.Source{Container: b, Against: "witness", Witness: s}, w.trust())
	if r.Exit != 0 || !strings.Contains(text(r), "is a prefix of checkpoint") {
		t.Error(text(r))
	}
	r = anchor.Verify(anchor.Source{Container: b, Against: "head", Checkpoint: w.snapshot.Head}, w.trust())
	if r.Exit != 0 || !strings.Contains(text(r), "the head equals the one of") {
		t.Error(text(r))
	}
	_, note, err := tlog.ParseSignedCheckpoint(w.snapshot.Head)
	if err != nil {
		t.Fatal(err)
	}
	cp, err := tlog.ParseCheckpoint(note.Text)
	if err != nil {
		t.Fatal(err)
	}
	cp.Root[3] ^= 1
	line, err := anchor.FlatLine(signNote(t, w, cp))
	if err != nil {
		t.Fatal(err)
	}
	r = anchor.Verify(anchor.Source{Container: b, Against: "flat", Flat: line}, w.trust())
	if r.Exit != 1 || reasons(r) != "REWRITTEN" {
		t.Error(text(r))
	}
}

func TestContainerOpening(t *testing.T) {
	w := newWorld(t)
	// Receipt 1 is the first decision of record: its salt is all zero.
	good := receipts.Opening(receipts.FieldArgsSent, [32]byte{0}, []byte(`{"path":"x"}`))
	b := w.proved(t, 1, anchor.NamedOpening{Field: "args_sent", Bytes: good}).Bytes()
	if r := w.judge(b); r.Exit != 0 || !strings.Contains(text(r), "opening of args_sent") {
		t.Error(text(r))
	}
	bad := receipts.Opening(receipts.FieldArgsSent, [32]byte{0}, []byte(`{"path":"y"}`))
	b = w.proved(t, 1, anchor.NamedOpening{Field: "args_sent", Bytes: bad}).Bytes()
	if r := w.judge(b); r.Exit != 1 || reasons(r) != "ALTERED" {
		t.Error(text(r))
	}
}

// containerTamper is one change of a container, and what it is called.
type containerTamper struct {
	name   string
	change func(c *anchor.Container)
	want   string
}

// containerTampers are changes to the container of receipt 5, none of which may
// pass; other is the container of another receipt of the chain.
func containerTampers(t testing.TB, w *world, other anchor.Container) []containerTamper {
	return []containerTamper{
		{"no receipt", func(c *anchor.Container) { c.Receipt = nil }, "ABSENT"},
		{"no head", func(c *anchor.Container) { c.Head = tlog.Proof{} }, "ABSENT"},
		{"no key line", func(c *anchor.Container) { c.KeyLines = nil }, "ABSENT"},
		{"no leaf", func(c *anchor.Container) { c.Evidence.LeafBytes = nil }, "ABSENT"},
		{"no leaf proof", func(c *anchor.Container) { c.Evidence.Leaf = tlog.Proof{} }, "ABSENT"},
		{"no key leaf", func(c *anchor.Container) { c.Evidence.Keys = nil }, "ABSENT"},
		{"no time", func(c *anchor.Container) { c.Evidence.Times = nil }, "MISSING_TIME"},
		{"receipt changed", func(c *anchor.Container) { c.Receipt = flipped(c.Receipt) }, "ALTERED"},
		{"receipt malformed", func(c *anchor.Container) { c.Receipt = append(slices.Clone(c.Receipt), ' ') }, "MALFORMED"},
		{"another receipt", func(c *anchor.Container) { c.Receipt = other.Receipt }, "SPLICED"},
		{"another place", func(c *anchor.Container) { c.Head = other.Head }, "SPLICED"},
		{"inclusion path", func(c *anchor.Container) { c.Head.Hashes[0][0] ^= 1 }, "ABSENT"},
		{"a hash more in the path", func(c *anchor.Container) { c.Head.Hashes = append(c.Head.Hashes, tlog.Hash{}) }, "ABSENT"},
		{"signed anew", func(c *anchor.Container) {
			c.Receipt = resign(t, w.dir, [][]byte{c.Receipt}, 0, func(_ int, p []byte) []byte {
				return bytes.Replace(p, []byte(`"tool":"read"`), []byte(`"tool":"list"`), 1)
			})[0]
		}, "ABSENT"},
		{"genesis changed", func(c *anchor.Container) {
			e, _ := receipts.ParseLine(c.KeyLines[0].Line)
			e.Payload = bytes.Replace(e.Payload, []byte(`"wall":"2`), []byte(`"wall":"1`), 1)
			c.KeyLines[0].Line = e.Bytes()
		}, "ALTERED"},
		{"genesis path", func(c *anchor.Container) { c.KeyLines[0].Proof.Hashes[0][0] ^= 1 }, "ABSENT"},
		{"a decision as key line", func(c *anchor.Container) {
			c.KeyLines[0] = anchor.KeyLine{Line: other.Receipt, Proof: other.Head}
		}, "MALFORMED"},
		{"key line at another head", func(c *anchor.Container) {
			c.KeyLines[0].Proof.Checkpoint = c.Evidence.Leaf.Checkpoint
		}, "MALFORMED"},
		{"head signature", func(c *anchor.Container) { changeSignature(&c.Head.Checkpoint, 0, c) }, "ALTERED"},
		{"head cosignature", func(c *anchor.Container) { changeSignature(&c.Head.Checkpoint, 1, c) }, "ALTERED"},
		{"head without cosignature", func(c *anchor.Container) {
			_, n, _ := tlog.ParseSignedCheckpoint(c.Head.Checkpoint)
			n.Signatures = n.Signatures[:1]
			c.Head.Checkpoint, c.KeyLines[0].Proof.Checkpoint = n.Bytes(), n.Bytes()
		}, "ABSENT"},
		{"leaf changed", func(c *anchor.Container) {
			c.Evidence.LeafBytes = bytes.Replace(c.Evidence.LeafBytes, []byte("\nprev "), []byte("\nprev 1"), 1)
		}, "ABSENT"},
		{"leaf path", func(c *anchor.Container) { c.Evidence.Leaf.Hashes[0][0] ^= 1 }, "ABSENT"},
		{"log signature", func(c *anchor.Container) { changeSignature(&c.Evidence.Leaf.Checkpoint, 0, c) }, "ALTERED"},
		{"key leaf path", func(c *anchor.Container) { c.Evidence.Keys[0].Proof.Hashes[0][0] ^= 1 }, "ABSENT"},
		{"token", func(c *anchor.Container) {
			tok := bytes.Clone(c.Evidence.Times[0].Token)
			tok[len(tok)-3] ^= 1
			c.Evidence.Times[0].Token = tok
		}, "ALTERED"},
		{"a blob nobody names", func(c *anchor.Container) { c.Evidence.Blobs = [][]byte{[]byte("x")} }, "MALFORMED"},
		{"a lower bound the receipt does not name", func(c *anchor.Container) {
			c.BeforeNote, c.BeforeToken = c.Evidence.Leaf.Checkpoint, []byte("x")
		}, "MALFORMED"},
		{"an opening of other bytes", func(c *anchor.Container) {
			o := receipts.Opening(receipts.FieldArgsSent, [32]byte{2}, []byte(`{"path":"y"}`))
			c.Openings = []anchor.NamedOpening{{Field: "args_sent", Bytes: o}}
		}, "ALTERED"},
	}
}

// changeSignature changes a bit of one signature in a checkpoint, wherever the
// container repeats that checkpoint.
func changeSignature(checkpoint *[]byte, line int, c *anchor.Container) {
	was := *checkpoint
	_, n, err := tlog.ParseSignedCheckpoint(was)
	if err != nil {
		return
	}
	sig := bytes.Clone(n.Signatures[line].Bytes)
	sig[len(sig)-1] ^= 1
	n.Signatures[line].Bytes = sig
	places := []*[]byte{checkpoint}
	for i := range c.KeyLines {
		places = append(places, &c.KeyLines[i].Proof.Checkpoint)
	}
	for i := range c.Evidence.Keys {
		places = append(places, &c.Evidence.Keys[i].Proof.Checkpoint)
	}
	for _, p := range places {
		if bytes.Equal(*p, was) {
			*p = n.Bytes()
		}
	}
}

// Every section matters: without it, or changed, the container does not pass.
func TestContainerTamper(t *testing.T) {
	w := newWorld(t)
	for _, tc := range containerTampers(t, w, w.proved(t, 6)) {
		t.Run(tc.name, func(t *testing.T) {
			c, err := anchor.ParseContainer(w.proved(t, 5).Bytes())
			if err != nil {
				t.Fatal(err)
			}
			tc.change(&c)
			r := w.judge(c.Bytes())
			if r.Exit == 0 || reasons(r) != tc.want {
				t.Errorf("exit %d reasons %q, want %q\n%s", r.Exit, reasons(r), tc.want, text(r))
			}
		})
	}
}

// malformedContainers are b with its frame broken.
func malformedContainers(t testing.TB, b []byte) map[string][]byte {
	t.Helper()
	sections, err := tlog.ParseSections("tool-guardian/proof/v1", b)
	if err != nil {
		t.Fatal(err)
	}
	format := func(s []tlog.Section) []byte { return tlog.FormatSections("tool-guardian/proof/v1", s) }
	return map[string][]byte{
		"empty":            {},
		"another version":  bytes.Replace(b, []byte("/v1"), []byte("/v2"), 1),
		"order":            format(append([]tlog.Section{sections[1], sections[0]}, sections[2:]...)),
		"twice":            format(append([]tlog.Section{sections[0]}, sections...)),
		"unknown":          format(append(slices.Clone(sections), tlog.Section{Name: "note", Data: nil})),
		"unknown opening":  format(append(slices.Clone(sections), tlog.Section{Name: "opening/secret", Data: nil})),
		"numbers with gap": bytes.Replace(b, []byte("key-line/1 "), []byte("key-line/2 "), 1),
		"cut":              b[:len(b)-1],
		"longer":           append(bytes.Clone(b), '\n'),
	}
}

func TestContainerForm(t *testing.T) {
	w := newWorld(t)
	for name, bad := range malformedContainers(t, w.proved(t, 5).Bytes()) {
		if _, err := anchor.ParseContainer(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if r := w.judge(bad); r.Exit != 1 || reasons(r) != "MALFORMED" {
			t.Errorf("%s: %s", name, text(r))
		}
	}
}

// A receipt that names a token is bounded from below.
func TestContainerLowerBound(t *testing.T) {
	w := newWorld(t)
	note := w.snapshot.Stamped.Leaf.Checkpoint
	token := w.snapshot.Stamped.Times[0].Token
	c := openChain(t, w.dir)
	com := common()
	com.NotBefore = &receipts.NotBefore{Token: sha256.Sum256(token), Checkpoint: sha256.Sum256(note)}
	pos, err := c.Append(t.Context(), receipts.NewHeartbeat(com))
	if err != nil {
		t.Fatal(err)
	}
	stop := stream(t, c)
	until(t, "witnessed", witnessed(t, w.dir, pos.Seq+1))
	stop()
	w.covered = sizeOf(t, w.dir)
	w.snapshot = w.rig.stamped(w.origin)
	p := w.proved(t, pos.Seq)
	p.BeforeNote, p.BeforeToken = note, token
	r := w.judge(p.Bytes())
	if r.Exit != 0 || r.NotBefore == "" || r.NotAfter == "" {
		t.Error(text(r))
	}
	p.BeforeToken = append(bytes.Clone(token), 0)
	if r := w.judge(p.Bytes()); r.Exit != 1 || reasons(r) != "ALTERED" {
		t.Error(text(r))
	}
}

func FuzzContainer(f *testing.F) {
	f.Add([]byte("tool-guardian/proof/v1\n"))
	f.Add([]byte("tool-guardian/proof/v1\nreceipt 1\nx\n"))
	f.Add([]byte("tool-guardian/proof/v1\ntime/1 9\na\n\nMAA=\n\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := anchor.ParseContainer(b)
		if err == nil && !bytes.Equal(c.Bytes(), b) {
			t.Errorf("%q came back as %q", b, c.Bytes())
		}
		r := anchor.Verify(anchor.Source{Container: b}, anchor.Trust{})
		if r.Exit == 0 {
			t.Errorf("passed with no pins: %q", b)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}

func FuzzFlat(f *testing.F) {
	f.Add([]byte("tool-guardian/anchors/1\na/c/0 1 AAAA n s\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, n := range anchor.ParseFlat(b).Notes {
			line, err := anchor.FlatLine(n.Bytes())
			if err != nil || !bytes.Contains(b, line) {
				t.Errorf("%q is written %q, %v", b, line, err)
			}
		}
	})
}
