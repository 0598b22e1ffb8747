package bench_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"toolguardian/cmd/internal/bench"
)

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func checkFigure(t *testing.T, name string, f bench.Figure, atLeast int) {
	t.Helper()
	if f.Count < atLeast {
		t.Errorf("%s: %d operations, want at least %d", name, f.Count, atLeast)
	}
	if f.P50 <= 0 || f.P99 < f.P50 || f.PerSecond <= 0 {
		t.Errorf("%s: no sound figure: %+v", name, f)
	}
}

func TestCalls(t *testing.T) {
	dir := t.TempDir()
	r, err := bench.Calls(t.Context(), bench.CallsOptions{Exe: self(t), Dir: dir, Turns: 1, Turn: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cases) != 4 {
		t.Fatalf("%d cases, want two payloads times two numbers of callers", len(r.Cases))
	}
	for _, c := range r.Cases {
		checkFigure(t, "direct", c.Direct, c.Callers)
		checkFigure(t, "relay", c.Relay, c.Callers)
		checkFigure(t, "evidence off", c.Off, c.Callers)
		checkFigure(t, "evidence on", c.On, c.Callers)
	}
	checkFigure(t, "flush", r.Flush, 1)
	for _, c := range r.Chain {
		checkFigure(t, "chain", c.Call, c.Callers)
		if c.Waits <= 0 || c.Waits > 2 {
			t.Errorf("%d callers: %v waits for the disk a call, want at most one for each of its two receipts", c.Callers, c.Waits)
		}
	}
	if alone := r.Chain[0]; alone.Callers != 1 || alone.Waits != 2 || alone.SaltSyncs != 2 {
		t.Errorf("one caller: %+v; its two receipts share no sync", alone)
	}
	checkReport(t, dir, r, r.Aims, 6)
}

func TestWitness(t *testing.T) {
	dir := t.TempDir()
	r, err := bench.Witness(t.Context(), bench.WitnessOptions{Dir: dir, Turns: 1, Heads: 1, Origins: 20, Load: time.Second, Open: 1000, Proofs: 100})
	if err != nil {
		t.Fatal(err)
	}
	checkFigure(t, "load", r.Load, r.Origins)
	checkFigure(t, "recent proofs", r.Log.Recent, 1)
	checkFigure(t, "any proofs", r.Log.Anywhere, 1)
	if r.Log.Leaves != 1000 || r.Log.OpenedIn <= 0 {
		t.Errorf("the log: %+v", r.Log)
	}
	checkFigure(t, "many", r.Many, r.Writers)
	checkFigure(t, "one", r.One, 1)
	checkFigure(t, "http", r.HTTP, r.Writers)
	checkFigure(t, "http, one", r.HTTPOne, 1)
	checkFigure(t, "flush", r.Flush, 1)
	checkFigure(t, "sign", r.Sign, 1)
	checkFigure(t, "verify", r.Verify, 1)
	checkFigure(t, "sign and verify", r.Pairs, 1)
	checkReport(t, dir, r, r.Aims, 5)
}

func TestVerify(t *testing.T) {
	dir := t.TempDir()
	r, err := bench.Verify(t.Context(), bench.VerifyOptions{Exe: self(t), Dir: dir, Receipts: 300})
	if err != nil {
		t.Fatal(err)
	}
	if r.Receipts < 300 || r.Bytes < 300*500 || r.Verdict != "PASS" {
		t.Errorf("a chain of %d receipts in %d bytes: %s", r.Receipts, r.Bytes, r.Verdict)
	}
	if r.Seconds <= 0 || r.PerSecond <= 0 || r.PurePerSecond <= 0 || r.TimesPure <= 0 {
		t.Errorf("no sound figures: %+v", r)
	}
	checkReport(t, dir, r, r.Aims, len(r.Aims))
}

// checkReport checks what every report owes: its aims are all in its text and
// in its JSON, which reads back as it was, and no folder is left.
func checkReport[R bench.Report](t *testing.T, dir string, r R, aims []bench.Aim, want int) {
	t.Helper()
	if len(aims) != want {
		t.Errorf("%d aims, want %d: %v", len(aims), want, aims)
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, a := range aims {
		if !strings.Contains(text.String(), a.String()) {
			t.Errorf("the text lacks %q:\n%s", a, &text)
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back R
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%s reads back as %+v: %v", b, back, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestCommandPrintsJSON(t *testing.T) {
	cmd := exec.Command(self(t), "bench", "witness", "--json", "--dir", t.TempDir(), "--turns", "1", "--heads", "1", "--origins", "0", "--open", "0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(out))
	d.DisallowUnknownFields()
	var r bench.WitnessReport
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkFigure(t, "many", r.Many, r.Writers)
}

func TestSenselessOptionsAreRefused(t *testing.T) {
	ctx, exe := t.Context(), self(t)
	_, calls := bench.Calls(ctx, bench.CallsOptions{Exe: exe, Turn: time.Millisecond})
	_, short := bench.Calls(ctx, bench.CallsOptions{Exe: exe, Turns: 1})
	_, witness := bench.Witness(ctx, bench.WitnessOptions{Turns: 1})
	_, verify := bench.Verify(ctx, bench.VerifyOptions{Exe: exe, Receipts: -1})
	for name, err := range map[string]error{"turns": calls, "turn": short, "heads": witness, "receipts": verify} {
		if err == nil || !strings.Contains(err.Error(), "--"+name) {
			t.Errorf("%s: error %v names no --%s", name, err, name)
		}
	}
}

func TestAServerThatEndsIsExplained(t *testing.T) {
	_, err := bench.Calls(t.Context(), bench.CallsOptions{Exe: "/bin/false", Dir: t.TempDir(), Turns: 1, Turn: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "direct: ") {
		t.Errorf("error %v does not say which side failed", err)
	}
}
