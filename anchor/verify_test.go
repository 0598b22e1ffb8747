package anchor_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
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
)

func text(r anchor.Report) string {
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		return err.Error()
	}
	return b.String()
}

func reasons(r anchor.Report) string {
	var words []string
	for _, f := range r.Reasons {
		words = append(words, string(f.Reason))
	}
	return strings.Join(slices.Compact(words), " ")
}

func TestHonestChain(t *testing.T) {
	w := newWorld(t)
	t.Run("grew after its last head", func(t *testing.T) {
		r := verifyDir(t, w.dir, w.snapshot, w.trust())
		if r.Exit != anchor.ExitPass || r.Verdict != anchor.VerdictPass || len(r.Reasons) != 0 {
			t.Fatal(text(r))
		}
		if r.Receipts != w.size || r.Witnessed != w.covered || r.Tail != w.size-w.covered || r.Tail == 0 {
			t.Errorf("receipts %d witnessed %d tail %d, want %d %d", r.Receipts, r.Witnessed, r.Tail, w.size, w.covered)
		}
		if r.NotAfter == "" {
			t.Error("no upper bound in time")
		}
		for _, a := range r.Axes {
			if a.State == anchor.StateNone || a.State == anchor.StateFail {
				t.Errorf("axis %s is %s", a.Name, a.State)
			}
		}
	})
	t.Run("JSON says the same", func(t *testing.T) {
		r := verifyDir(t, w.dir, w.snapshot, w.trust())
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		names := slices.Sorted(maps.Keys(got))
		if want := "against axes counts exit format key notAfter notAfterBy notProved origin reasons receipts tail target verdict witnessed"; strings.Join(names, " ") != want {
			t.Errorf("members %s", names)
		}
		if got["verdict"] != "PASS" || got["exit"] != 0.0 || got["format"] != anchor.ReportFormat || len(got["axes"].([]any)) != 8 {
			t.Errorf("%s", b)
		}
	})
	t.Run("tail beyond max-lag", func(t *testing.T) {
		tr := w.trust()
		lag := uint64(2)
		tr.MaxLag = &lag
		if r := verifyDir(t, w.dir, w.snapshot, tr); r.Exit != 2 || reasons(r) != "UNPROTECTED" {
			t.Error(text(r))
		}
	})
	t.Run("last line without newline counts", func(t *testing.T) {
		dir := w.copyWith(t, func(l [][]byte) []byte { return bytes.TrimSuffix(joined(l), []byte("\n")) })
		if r := verifyDir(t, dir, w.snapshot, w.trust()); r.Exit != 0 || r.Receipts != w.size {
			t.Error(text(r))
		}
	})
	t.Run("a file of another program in the folder", func(t *testing.T) {
		dir := w.copyWith(t, func(l [][]byte) []byte { return joined(l) })
		if err := os.WriteFile(filepath.Join(dir, "chain", "notes.txt"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := verifyDir(t, dir, w.snapshot, w.trust()); r.Exit != 0 {
			t.Error(text(r))
		}
	})
}

// A chain that is being written is verified as it was at one moment.
func TestVerifyWhileWritten(t *testing.T) {
	w := newWorld(t)
	c := openChain(t, w.dir)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for range 500 { // bounded: a fast disk would outrun the verifier for ever
			select {
			case <-stop:
				return
			default:
				record(t, c, 1)
			}
		}
	}()
	for range 20 {
		if r := verifyDir(t, w.dir, w.snapshot, w.trust()); r.Exit != 0 {
			t.Fatal(text(r))
		}
	}
	close(stop)
	<-done
	if n := sizeOf(t, w.dir); n == w.size {
		t.Error("nothing was written meanwhile")
	}
}

// Segments are one chain; without one of them its receipts are missing.
func TestSegments(t *testing.T) {
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "evidence")
	c, err := chain.Open(t.Context(), chain.Options{Dir: dir, Version: "test", SegmentSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	enroll(t, c, r)
	record(t, c, 10)
	stop := stream(t, c)
	until(t, "witnessed", witnessed(t, dir, 21))
	stop()
	tr := r.trust(c.HeadKey())
	tr.TSARoots = nil
	snap := r.snapshot(c.Origin(), 0)
	if rep := verifyDir(t, dir, snap, tr); rep.Exit != 0 || rep.Receipts != 21 {
		t.Fatal(text(rep))
	}
	segments, err := filepath.Glob(filepath.Join(dir, "chain", "*.jsonl"))
	if err != nil || len(segments) < 4 {
		t.Fatal(segments, err)
	}
	gone := filepath.Base(segments[2])
	if err := os.Remove(segments[2]); err != nil {
		t.Fatal(err)
	}
	rep := verifyDir(t, dir, snap, tr)
	if rep.Exit != 1 || reasons(rep) != "GAP" || fmt.Sprintf("%020d.jsonl", *rep.Reasons[0].Index) != gone {
		t.Error(text(rep))
	}
}

// Each pin that is missing leaves its axis UNPINNED and the exit 2; a wrong one
// fails.
func TestPins(t *testing.T) {
	w := newWorld(t)
	other := tlogKey(t, w.origin, "other")
	otherLog := tlogKey(t, logName, "other")
	for _, tc := range []struct {
		name   string
		change func(*anchor.Trust)
		exit   int
		want   string
	}{
		{"no key at all", func(tr *anchor.Trust) { *tr = anchor.Trust{Now: time.Now()} }, 2, "UNPINNED"},
		{"no log key", func(tr *anchor.Trust) { tr.WitnessKeys = tr.WitnessKeys[1:] }, 2, "UNPINNED"},
		{"no cosigner key", func(tr *anchor.Trust) { tr.WitnessKeys = tr.WitnessKeys[:1] }, 2, "UNPINNED"},
		{"no chain key", func(tr *anchor.Trust) { tr.ChainKeys = nil }, 2, "UNPINNED"},
		{"origin instead of key", func(tr *anchor.Trust) { tr.ChainKeys, tr.Origin = nil, w.origin }, 0, ""},
		{"no authority", func(tr *anchor.Trust) { tr.TSARoots = nil }, 0, ""},
		{"no authority, time asked for", func(tr *anchor.Trust) { tr.TSARoots, tr.RequireTime = nil, true }, 2, "UNPINNED"},
		{"another chain key", func(tr *anchor.Trust) { tr.ChainKeys = []tlog.Vkey{other} }, 1, "ABSENT"},
		{"one of two chain keys", func(tr *anchor.Trust) { tr.ChainKeys = append(tr.ChainKeys, other) }, 1, "ABSENT"},
		{"another origin", func(tr *anchor.Trust) { tr.Origin = strings.Replace(w.origin, "agents", "agentx", 1) }, 1, "SPLICED"},
		{"another log key", func(tr *anchor.Trust) { tr.WitnessKeys = []tlog.Vkey{otherLog, tr.WitnessKeys[1]} }, 1, "ABSENT"},
		{"policy", func(tr *anchor.Trust) {
			tr.Policy = policy(t, "log "+tr.WitnessKeys[0].String()+"\nquorum none\n")
			tr.WitnessKeys = tr.WitnessKeys[1:]
		}, 0, ""},
		{"policy whose quorum is not met", func(tr *anchor.Trust) {
			k := cosignerKey(t, "w.example/cosigner")
			tr.Policy = policy(t, "log "+tr.WitnessKeys[0].String()+"\nwitness w "+k.String()+"\nquorum w\n")
		}, 1, "ABSENT"},
		{"policy of another log", func(tr *anchor.Trust) { tr.Policy = policy(t, "log "+otherLog.String()+"\nquorum none\n") }, 1, "ABSENT"},
		{"chain policy", func(tr *anchor.Trust) {
			tr.ChainPolicy = policy(t, "log "+w.key.String()+"\nwitness w "+tr.WitnessKeys[1].String()+"\nquorum w\n")
			tr.ChainKeys = nil
		}, 0, ""},
		{"chain policy with another witness", func(tr *anchor.Trust) {
			k := cosignerKey(t, "w.example/cosigner")
			tr.ChainPolicy = policy(t, "log "+w.key.String()+"\nwitness w "+k.String()+"\nquorum w\n")
		}, 1, "ABSENT"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := w.trust()
			tc.change(&tr)
			if r := verifyDir(t, w.dir, w.snapshot, tr); r.Exit != tc.exit || reasons(r) != tc.want {
				t.Errorf("exit %d reasons %q, want %d %q\n%s", r.Exit, reasons(r), tc.exit, tc.want, text(r))
			}
		})
	}
}

func seedKey(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

func tlogKey(t testing.TB, name, seed string) tlog.Vkey {
	t.Helper()
	k, err := tlog.NewVkey(name, tlog.KeyEd25519, seedKey(seed).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func cosignerKey(t testing.TB, name string) tlog.Vkey {
	t.Helper()
	k, err := tlog.NewVkey(name, tlog.KeyCosignature, seedKey(name).Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func policy(t testing.TB, text string) *tlog.Policy {
	t.Helper()
	p, err := tlog.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// flipped changes one bit of the payload's base64 so that the line stays well
// formed.
func flipped(line []byte) []byte {
	out := bytes.Clone(line)
	i := bytes.Index(out, []byte(`"payload":"`)) + 400
	if out[i] == 'A' {
		out[i] = 'B'
	} else {
		out[i] = 'A'
	}
	return out
}

func payloadOf(t testing.TB, line []byte) []byte {
	t.Helper()
	e, err := receipts.ParseLine(line)
	if err != nil {
		t.Fatal(err)
	}
	return e.Payload
}

// resign signs lines anew from index on with the chain's own receipt key, as
// its owner could: links, signatures and numbers all hold.
func resign(t testing.TB, dir string, lines [][]byte, from int, change func(i int, payload []byte) []byte) [][]byte {
	t.Helper()
	priv, err := tlog.LoadKeyFile(filepath.Join(dir, "keys", "receipt.key"))
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Clone(lines)
	for i := from; i < len(out); i++ {
		p := change(i, payloadOf(t, lines[i]))
		if i > from {
			was, now := sha256.Sum256(lines[i-1]), sha256.Sum256(out[i-1])
			p = bytes.ReplaceAll(p, hexBytes(was), hexBytes(now))
		}
		out[i] = signed(priv, p)
	}
	return out
}

func hexBytes(h [32]byte) []byte { return []byte(tlog.Hash(h).Hex()) }

func signed(priv ed25519.PrivateKey, payload []byte) []byte {
	e := receipts.Envelope{Payload: payload, KeyID: receipts.KeyID(priv.Public().(ed25519.PublicKey))}
	e.Sig = ed25519.Sign(priv, e.PAE())
	return e.Bytes()
}

// What a broken line was is told by the line after it.
func TestAlteredTellsBothHashes(t *testing.T) {
	w := newWorld(t)
	var was, is [32]byte
	dir := w.copyWith(t, func(l [][]byte) []byte {
		was = sha256.Sum256(l[5])
		l[5] = flipped(l[5])
		is = sha256.Sum256(l[5])
		return joined(l)
	})
	r := verifyDir(t, dir, w.snapshot, w.trust())
	if len(r.Reasons) != 1 || r.Reasons[0].Want != string(hexBytes(was)) || r.Reasons[0].Have != string(hexBytes(is)) {
		t.Error(text(r))
	}
}

func TestNoWitness(t *testing.T) {
	w := newWorld(t)
	r := verifyDir(t, w.dir, nil, w.trust())
	if r.Exit != 2 || reasons(r) != "UNPROTECTED" || !strings.Contains(text(r), "no witness was consulted") {
		t.Error(text(r))
	}
	empty := filepath.Join(t.TempDir(), "none")
	r = verifyDir(t, empty, nil, w.trust())
	if r.Exit != 1 || !strings.Contains(reasons(r), "ABSENT") {
		t.Error(text(r))
	}
}

func TestCheckpointFile(t *testing.T) {
	w := newWorld(t)
	check := func(name string, dir string, note []byte, exit int, want string) {
		t.Helper()
		rd, err := chain.OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		r := anchor.Verify(anchor.Source{Target: dir, Chain: rd, Against: "file", Checkpoint: note}, w.trust())
		if r.Exit != exit || reasons(r) != want {
			t.Errorf("%s: exit %d reasons %q\n%s", name, r.Exit, reasons(r), text(r))
		}
	}
	check("honest", w.dir, w.snapshot.Head, 0, "")
	check("no note", w.dir, []byte("x"), 1, "MALFORMED")
	short := w.copyWith(t, func(l [][]byte) []byte { return joined(l[:9]) })
	check("truncated", short, w.snapshot.Head, 1, "TRUNCATED")
	check("the log's own checkpoint", w.dir, w.snapshot.Newest.Leaf.Checkpoint, 2, "UNPROTECTED")
}

func TestFlatFile(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "anchors")
	verify := func(dir string, b []byte) anchor.Report {
		t.Helper()
		rd, err := chain.OpenReader(dir)
		if err != nil {
			t.Fatal(err)
		}
		return anchor.Verify(anchor.Source{Target: dir, Chain: rd, Against: path, Flat: b}, w.trust())
	}
	if err := anchor.AppendFlat(path, w.snapshot.Head); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := verify(w.dir, whole); r.Exit != 0 {
		t.Error(text(r))
	}
	// A torn line, then an append: the torn one spoils nothing.
	if err := os.WriteFile(path, append(whole, whole[25:80]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := anchor.AppendFlat(path, w.snapshot.Head); err != nil {
		t.Fatal(err)
	}
	torn, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if f := anchor.ParseFlat(torn); f.Torn != 1 || len(f.Notes) != 2 {
		t.Errorf("%d torn, %d heads", f.Torn, len(f.Notes))
	}
	if r := verify(w.dir, torn); r.Exit != 0 || !strings.Contains(text(r), "torn") {
		t.Error(text(r))
	}
	for _, lax := range []string{" ", "\t", "\r"} {
		spaced := bytes.Replace(whole, []byte(" "), []byte(lax+" "), 1)
		if f := anchor.ParseFlat(spaced); f.Torn != 1 || len(f.Notes) != 0 {
			t.Errorf("a line with %q was read", lax)
		}
	}
	rewritten := w.copyWith(t, func(l [][]byte) []byte {
		return joined(resign(t, w.dir, l, 5, func(_ int, p []byte) []byte {
			return bytes.Replace(p, []byte(`"tool":"read"`), []byte(`"tool":"list"`), 1)
		}))
	})
	if r := verify(rewritten, whole); r.Exit != 1 || reasons(r) != "REWRITTEN" {
		t.Error(text(r))
	}
	t.Run("two roots for one size", func(t *testing.T) {
		_, note, err := tlog.ParseSignedCheckpoint(w.snapshot.Head)
		if err != nil {
			t.Fatal(err)
		}
		cp, err := tlog.ParseCheckpoint(note.Text)
		if err != nil {
			t.Fatal(err)
		}
		cp.Root[0] ^= 1
		line, err := anchor.FlatLine(signNote(t, w, cp))
		if err != nil {
			t.Fatal(err)
		}
		r := verify(w.dir, append(bytes.Clone(whole), append(line, '\n')...))
		if r.Exit != 1 || !strings.Contains(reasons(r), "FORK") || len(r.Proofs) != 1 {
			t.Error(text(r))
		}
		if _, err := tlog.ParseSections("tool-guardian/fork/v1", r.Proofs[0].Bytes); err != nil {
			t.Error(err)
		}
	})
}

func signNote(t testing.TB, w *world, cp tlog.Checkpoint) []byte {
	t.Helper()
	priv, err := tlog.LoadKeyFile(filepath.Join(w.dir, "keys", "head.key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := tlog.NewSigner(w.origin, tlog.KeyEd25519, priv)
	if err != nil {
		t.Fatal(err)
	}
	sig, err := s.Sign(cp.Text())
	if err != nil {
		t.Fatal(err)
	}
	return tlog.Note{Text: cp.Text(), Signatures: []tlog.Signature{sig}}.Bytes()
}
