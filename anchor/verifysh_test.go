package anchor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/anchor"
	"toolguardian/receipts"
)

// secondVerifier runs the shell verifier on containers of one world.
type secondVerifier struct {
	dir, script string
	keys        []string
}

func newSecondVerifier(t *testing.T, w *world) *secondVerifier {
	t.Helper()
	for _, tool := range []string{"sh", "openssl", "sha256sum", "awk", "base64", "od"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the second verifier needs %s: %v", tool, err)
		}
	}
	script, err := filepath.Abs(filepath.Join("..", "testdata", "verify-sh", "verify.sh"))
	if err != nil {
		t.Fatal(err)
	}
	s := &secondVerifier{dir: t.TempDir(), script: script}
	ca := filepath.Join(s.dir, "ca.pem")
	if err := os.WriteFile(ca, w.rig.ca, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, k := range append(w.rig.keys(), w.key) {
		s.keys = append(s.keys, k.String())
	}
	s.keys = append(s.keys, ca)
	return s
}

// judge returns the script's exit code and what it said.
func (s *secondVerifier) judge(t *testing.T, container []byte, keys ...string) (int, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "proof")
	if err := os.WriteFile(name, container, 0o600); err != nil {
		t.Fatal(err)
	}
	if keys == nil {
		keys = s.keys
	}
	cmd := exec.Command("sh", append([]string{s.script, name}, keys...)...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func (s *secondVerifier) refuses(t *testing.T, name string, container []byte) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		if code, out := s.judge(t, container); code != 1 || !strings.Contains(out, "REFUSED: ") {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}

// The second verifier accepts what Verify accepts and refuses every class of
// tampering that Verify refuses, with no code in common.
func TestSecondVerifier(t *testing.T) {
	w := newWorld(t)
	s := newSecondVerifier(t, w)
	opening := anchor.NamedOpening{Field: "args_sent", Bytes: receipts.Opening(receipts.FieldArgsSent, [32]byte{2}, []byte(`{"path":"x"}`))}
	for _, c := range []anchor.Container{w.proved(t, 0), w.proved(t, 5, opening), w.proved(t, w.covered-1)} {
		if code, out := s.judge(t, c.Bytes()); code != 0 || !strings.Contains(out, "\nOK receipt ") {
			t.Errorf("exit %d\n%s", code, out)
		}
	}
	for i, other := range []string{tlogKey(t, logName, "x").String(), cosignerKey(t, logName+"/cosigner").String(), tlogKey(t, w.origin, "x").String()} {
		keys := append([]string(nil), s.keys...)
		keys[i] = other
		if code, out := s.judge(t, w.proved(t, 5).Bytes(), keys...); code != 1 {
			t.Errorf("with another key in place of %d: exit %d\n%s", i, code, out)
		}
	}
	for i, tc := range containerTampers(t, w, w.proved(t, 6)) {
		if testing.Short() && i%4 != 0 {
			continue
		}
		c, err := anchor.ParseContainer(w.proved(t, 5).Bytes())
		if err != nil {
			t.Fatal(err)
		}
		tc.change(&c)
		s.refuses(t, tc.name, c.Bytes())
	}
}

// Bytes changed, cut, added and put in another order, in every section.
func TestSecondVerifierBytes(t *testing.T) {
	w := newWorld(t)
	s := newSecondVerifier(t, w)
	b := w.proved(t, 5).Bytes()
	for name, bad := range malformedContainers(t, b) {
		s.refuses(t, name, bad)
	}
}
