package anchor_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
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
	"toolguardian/witness/api"
)

// go test ./anchor -run TestMakeFrozen -update-frozen v2
var updateFrozen = flag.String("update-frozen", "", "write this new folder of public vectors; one that is there is never changed")

// frozenMaker writes one folder of vectors, each file once.
type frozenMaker struct {
	t   *testing.T
	dir string
	set frozenSet
	w   *world
}

func TestMakeFrozen(t *testing.T) {
	if *updateFrozen == "" {
		t.Skip("writes public vectors; asked for by -update-frozen")
	}
	m := &frozenMaker{t: t, dir: filepath.Join(frozenDir, *updateFrozen), w: newWorldOf(t, 6, 2)}
	if _, err := os.Stat(m.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s is there (%v): a published folder is never changed, name a new one", m.dir, err)
	}
	m.set = frozenSet{Now: time.Now().UTC().Truncate(time.Second), Keys: map[string]string{}}
	m.keys()
	m.parts()
	m.chainVectors()
	m.madeVectors()
	m.containerVectors()
	m.snapshotVectors()
	m.leaves()
	b, err := json.MarshalIndent(m.set, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	m.put("EXPECTED.json", append(b, '\n'))
	m.put("SHA256SUMS", []byte(sumsOf(t, m.dir)))
}

// put writes a file that is not there.
func (m *frozenMaker) put(name string, b []byte) string {
	m.t.Helper()
	path := filepath.Join(m.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err != nil {
		m.t.Fatal(err)
	}
	return name
}

// putFolder copies what anyone may see of a chain: never its keys.
func (m *frozenMaker) putFolder(name, from string) string {
	m.t.Helper()
	for _, part := range []string{"FORMAT", "chain", "salts"} {
		err := filepath.WalkDir(filepath.Join(from, part), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			rel, err := filepath.Rel(from, path)
			m.put(name+"/"+filepath.ToSlash(rel), readFile(m.t, path))
			return err
		})
		if err != nil {
			m.t.Fatal(err)
		}
	}
	return name
}

// judge adds a vector with the verdict that it gets, which must be the one
// that the table it comes from states.
func (m *frozenMaker) judge(v frozenVector, exit int, want string) {
	m.t.Helper()
	r := anchor.Verify(v.source(m.t, m.dir), m.set.trust(m.t, m.dir, v))
	if r.Exit != exit || want != "?" && reasons(r) != want {
		m.t.Fatalf("%s: exit %d reasons %q, want %d %q\n%s", v.Name, r.Exit, reasons(r), exit, want, text(r))
	}
	v.Verdict, v.Exit, v.Reasons = r.Verdict, r.Exit, told(r)
	m.set.Vectors = append(m.set.Vectors, v)
}

var allPins = []string{"log", "cosigner", "chain", "tsa"}

func (m *frozenMaker) keys() {
	log := m.w.rig.keys()
	for name, k := range map[string]tlog.Vkey{
		"log": log[0], "cosigner": log[1], "chain": m.w.key,
		"other-log": tlogKey(m.t, logName, "other"), "other-cosigner": cosignerKey(m.t, logName+"/cosigner"), "other-chain": tlogKey(m.t, m.w.origin, "other"),
	} {
		m.set.Keys[name] = k.String()
	}
}

// parts are the artefacts by themselves.
func (m *frozenMaker) parts() {
	ctx, w := context.Background(), m.w
	must := func(b []byte, err error) []byte {
		if err != nil {
			m.t.Fatal(err)
		}
		return b
	}
	m.putFolder("chain", w.dir)
	m.put("openings/1.args_sent.open", receipts.Opening(receipts.FieldArgsSent, [32]byte{0}, []byte(`{"path":"x"}`)))
	m.put("heads/head", w.snapshot.Head)
	m.put("heads/log-checkpoint", must(w.rig.client.Checkpoint(ctx)))
	m.put("time/note", must(w.rig.client.TimestampNote(ctx, logSize(m.t, w.snapshot.Stamped))))
	m.put("time/token.der", w.snapshot.Stamped.Times[0].Token)
	m.put("time/root.pem", w.rig.ca)
	p := w.proved(m.t, 5)
	m.put("tlog-proofs/receipt-5", p.Head.Bytes())
	m.put("tlog-proofs/head-leaf", p.Evidence.Leaf.Bytes())
}

func logSize(t testing.TB, ev *anchor.Evidence) uint64 {
	t.Helper()
	cp, _, err := tlog.ParseSignedCheckpoint(ev.Leaf.Checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	return cp.Size
}

func slug(name string) string {
	return strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name)
}

// chainVectors hold chains against a cosigned head.
func (m *frozenMaker) chainVectors() {
	pins := []string{"cosigner", "chain"}
	against := func(name string) frozenVector {
		return frozenVector{Name: name, Chain: "chain", Checkpoint: "heads/head", Pins: pins}
	}
	m.judge(against("chain/honest"), 0, "")
	salted := against("chain/every-salt-is-there")
	salted.Salts = true
	m.judge(salted, 0, "")
	lag, late := uint64(1), against("chain/tail-beyond-max-lag")
	late.MaxLag = &lag
	m.judge(late, 2, "UNPROTECTED")
	none := against("chain/held-against-nothing")
	none.Checkpoint = ""
	m.judge(none, 2, "UNPROTECTED")
	for _, pin := range []struct {
		name string
		pins []string
		exit int
		want string
	}{
		{"chain/no-pin-at-all", []string{}, 2, "UNPINNED"}, {"chain/no-chain-key", pins[:1], 2, "UNPINNED"}, {"chain/no-cosigner-key", pins[1:], 2, "UNPINNED"},
		{"chain/another-cosigner", []string{"other-cosigner", "chain"}, 1, "?"}, {"chain/another-chain-key", []string{"cosigner", "other-chain"}, 1, "ABSENT"},
	} {
		v := against(pin.name)
		v.Pins = pin.pins
		m.judge(v, pin.exit, pin.want)
	}
	for _, tc := range chainTampers(m.t, m.w) {
		v := against("chain/" + slug(tc.name))
		out, lines := tc.change(m.lines()), ""
		if out != nil {
			lines = m.put("doctored/"+slug(tc.name)+".jsonl", out)
		}
		v.Lines = &lines
		// A checkpoint file brings no key leaves, so that a lost genesis costs more
		// than it does before a witness.
		m.judge(v, tc.exit, "?")
		got := m.set.Vectors[len(m.set.Vectors)-1].Reasons
		if word, _, _ := strings.Cut(tc.want, " "); !strings.Contains(strings.Join(got, " "), word) || word == "" && len(got) > 0 {
			m.t.Fatalf("%s: %q, want %s", v.Name, got, word)
		}
	}
	m.flatVectors()
}

// lines are the world's receipts.
func (m *frozenMaker) lines() [][]byte {
	var out [][]byte
	m.w.copyWith(m.t, func(l [][]byte) []byte { out = l; return joined(l) })
	return out
}

// flatVectors hold the chain against an anchor file.
func (m *frozenMaker) flatVectors() {
	head, note, err := tlog.ParseSignedCheckpoint(m.w.snapshot.Head)
	if err != nil {
		m.t.Fatal(err)
	}
	line, err := anchor.FlatLine(m.w.snapshot.Head)
	if err != nil {
		m.t.Fatal(err)
	}
	head.Root[0] ^= 1
	other, err := anchor.FlatLine(signNote(m.t, m.w, head))
	if err != nil {
		m.t.Fatal(err)
	}
	flat := func(name string, exit int, want string, lines ...[]byte) {
		b := append([]byte("tool-guardian/anchors/1\n"), joined(lines)...)
		m.judge(frozenVector{Name: "flat/" + name, Chain: "chain", Flat: m.put("heads/flat-"+name, b), Pins: []string{"cosigner", "chain"}}, exit, want)
	}
	flat("honest", 0, "", line)
	flat("torn-line", 0, "", line, line[:60], line)
	flat("two-roots-for-one-size", 1, "?", line, other)
	note.Signatures[0].Bytes[20] ^= 1
	changed, err := anchor.FlatLine(note.Bytes())
	if err != nil {
		m.t.Fatal(err)
	}
	flat("signature-changed", 1, "ALTERED", changed)
}

// madeVectors are chains sealed with keys that anyone can derive: SHA-256 of
// "first", "second" and so on is the seed.
func (m *frozenMaker) madeVectors() {
	made := makeChain(m.t, "a.invalid", "first")
	made.add(receipts.NewHeartbeat(common()))
	made.rotate("second")
	made.add(receipts.NewHeartbeat(common()))
	m.set.Keys["made"] = tlogKey(m.t, made.origin, "head of a.invalid").String()
	m.made("rotated", made.lines, 2, "UNPROTECTED")
	retired := append(slices.Clone(made.lines), nil)
	made.key = seedKey("first")
	made.add(receipts.NewHeartbeat(common()))
	retired[4] = made.lines[4]
	m.made("a-retired-key-signs", retired, 1, "REVOKED UNPROTECTED")

	ended := makeChain(m.t, "a.invalid", "first")
	ended.add(receipts.NewSessionOpen(common(), "2025-06-18", time.Minute, receipts.Commit(receipts.FieldPrincipal, [32]byte{1}, nil)))
	ended.add(receipts.NewSessionClose(common(), receipts.EndClosed))
	m.made("a-session-closed", ended.lines, 2, "UNPROTECTED")
	ended.add(receipts.NewHeartbeat(common()))
	m.made("a-receipt-after-the-close", ended.lines, 1, "SPLICED UNPROTECTED")

	erased := makeChain(m.t, "a.invalid", "first")
	erased.add(receipts.NewDecision(common(), receipts.Decision{Effect: "allow", Mode: receipts.ModeEnforced}, receipts.Commit(receipts.FieldArgsSent, [32]byte{1}, nil)))
	erased.add(receipts.NewErasure(common(), []receipts.Erased{{Seq: 1, Field: "args_sent"}}, receipts.ErasedOnRequest))
	m.made("a-field-erased", erased.lines, 2, "UNPROTECTED ERASED")
}

func (m *frozenMaker) made(name string, lines [][]byte, exit int, want string) {
	m.t.Helper()
	file := m.put("made/"+name+".jsonl", joined(lines))
	m.judge(frozenVector{Name: "made/" + name, Chain: "chain", Lines: &file, Pins: []string{"made"}}, exit, want)
}

func (m *frozenMaker) containerVectors() {
	put := func(name string, c anchor.Container, exit int, want string) {
		m.judge(frozenVector{Name: "proof/" + name, Container: m.put("proofs/"+name+".proof", c.Bytes()), Pins: allPins}, exit, want)
	}
	opening := anchor.NamedOpening{Field: "args_sent", Bytes: receipts.Opening(receipts.FieldArgsSent, [32]byte{0}, []byte(`{"path":"x"}`))}
	put("genesis", m.w.proved(m.t, 0), 0, "")
	put("receipt-1-with-an-opening", m.w.proved(m.t, 1, opening), 0, "")
	put("receipt-5", m.w.proved(m.t, 5), 0, "")
	for _, tc := range containerTampers(m.t, m.w, m.w.proved(m.t, 6)) {
		c, err := anchor.ParseContainer(m.w.proved(m.t, 5).Bytes())
		if err != nil {
			m.t.Fatal(err)
		}
		tc.change(&c)
		exit := 1
		if tc.want == "MISSING_TIME" {
			exit = 2
		}
		put(slug(tc.name), c, exit, tc.want)
	}
	for name, b := range malformedContainers(m.t, m.w.proved(m.t, 5).Bytes()) {
		name = slug(name)
		m.judge(frozenVector{Name: "frame/" + name, Container: m.put("proofs/frame-"+name+".proof", b), Pins: allPins}, 1, "MALFORMED")
	}
}

func (m *frozenMaker) snapshotVectors() {
	put := func(name string, s *anchor.Snapshot, exit int, want string) {
		b, err := json.Marshal(s)
		if err != nil {
			m.t.Fatal(err)
		}
		m.judge(frozenVector{Name: "witness/" + name, Chain: "chain", Snapshot: m.put("witness/"+name+".json", b), Pins: allPins}, exit, want)
	}
	put("honest", m.w.snapshot, 0, "")
	put("two-roots-for-one-size", forkedLog(m.t, m.w), 1, "?")
	for _, tc := range snapshotTampers() {
		s := m.w.rig.snapshot(m.w.origin, 0)
		tc.change(s)
		want := tc.want
		if want == "" {
			want = "?"
		}
		put(slug(tc.name), s, tc.exit, want)
	}
}

// leaves are entries of another witness's log, of every type that it comes to
// write: enrolment, heads, an event, time, a stamp, a fork.
func (m *frozenMaker) leaves() {
	ctx, r := context.Background(), newRig(m.t)
	dir := filepath.Join(m.t.TempDir(), "evidence")
	c := openChain(m.t, dir)
	enroll(m.t, c, r)
	record(m.t, c, 2)
	stop := stream(m.t, c, func(o *anchor.Options) { o.Heartbeat = time.Minute })
	until(m.t, "witnessed", witnessed(m.t, dir, sizeOf(m.t, dir)))
	stop()
	r.stamped(c.Origin())
	note, err := c.SignNote(api.Stamp{Origin: c.Origin(), Log: logName, Commitments: []tlog.Hash{tlog.LeafHash([]byte("a file"))}}.Text())
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := r.client.Stamp(ctx, note); err != nil {
		m.t.Fatal(err)
	}
	m.fork(r, c)
	seen := map[api.LeafType]int{}
	until(m.t, "a leaf of each type", func() bool {
		m.entries(r, seen)
		return seen[api.LeafEvent] > 0 && seen[api.LeafTime] > 0 && seen[api.LeafStamp] > 0 && seen[api.LeafFork] > 0
	})
}

// fork shows the witness another root for the size that it knows.
func (m *frozenMaker) fork(r *rig, c *chain.Chain) {
	head, _, err := tlog.ParseSignedCheckpoint(r.snapshot(c.Origin(), 0).Head)
	if err != nil {
		m.t.Fatal(err)
	}
	size := head.Size
	head.Root[0] ^= 1
	w := &world{dir: c.Dir(), origin: c.Origin()}
	if _, err := r.client.AddCheckpoint(context.Background(), size, nil, signNote(m.t, w, head)); err == nil {
		m.t.Fatal("the witness cosigned a fork")
	}
}

// entries writes the leaves that are new.
func (m *frozenMaker) entries(r *rig, seen map[api.LeafType]int) {
	ctx := context.Background()
	latest, err := r.client.CheckpointLatest(ctx)
	if err != nil {
		m.t.Fatal(err)
	}
	cp, _, err := tlog.ParseSignedCheckpoint(latest)
	if err != nil {
		m.t.Fatal(err)
	}
	for i := uint64(len(m.set.Leaves)); i < cp.Size; i++ {
		b, err := r.client.Entry(ctx, i, cp.Size)
		if err != nil {
			m.t.Fatal(err)
		}
		leaf, err := api.ParseLeaf(b)
		if err != nil {
			m.t.Fatal(err)
		}
		file := m.put(fmt.Sprintf("log/%d", i), b)
		m.set.Leaves = append(m.set.Leaves, frozenLeaf{File: file, Type: string(leaf.Type), Hash: tlog.LeafHash(b).Hex()})
		seen[leaf.Type]++
	}
}
