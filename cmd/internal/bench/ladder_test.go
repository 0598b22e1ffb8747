package bench_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/cmd/internal/bench"
)

func TestLadder(t *testing.T) {
	results := t.TempDir()
	for name, content := range map[string]string{
		"a.json": `{"request":{"name":"run"},"result":{"content":[{"type":"text","text":"` + strings.Repeat(`one more line\n`, 2000) + `"}]}}`,
		"b.json": `{"request":{"name":"read_file"},"result":{"content":[{"type":"text","text":"` + strings.Repeat(`ü`, 20_000) + `"}]}}`,
		"c.json": `{"request":{"name":"run"},"error":{"code":1}}`,
	} {
		if err := os.WriteFile(filepath.Join(results, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := bench.Ladder(t.Context(), bench.LadderOptions{Results: results, Bytes: 1 << 20, Turns: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i, rule := range []string{"shell", "json", "diff", "csv"} {
		if m := r.Made[i]; len(m.Rules) != 1 || m.Rules[0] != rule || m.Shown*4 > m.Of || m.Shown == 0 {
			t.Errorf("%+v, want rule %s", m, rule)
		}
	}
	if len(r.Real) != 2 || r.Real[0].Of != 28_000 || r.Real[0].Shown >= r.Real[0].Of || r.Real[1].Of != 20_000 || r.Real[1].Shown != 20_000 || len(r.Real[1].Rules) != 0 {
		t.Errorf("recorded: %+v", r.Real)
	}
	for _, g := range r.Giant {
		if g.Bytes < 1_000_000 || g.Shape <= 0 || g.CopyTwice <= 0 || g.Times <= 0 || g.Rule != "line" && g.Rule != "json" {
			t.Errorf("no sound figure: %+v", g)
		}
	}
	checkReport(t, t.TempDir(), r, r.Aims, 4)
}

func TestLadderRefusals(t *testing.T) {
	for says, o := range map[string]bench.LadderOptions{
		"--bytes":            {Turns: 1},
		"--turns":            {Bytes: 1},
		"no recorded result": {Bytes: 1, Turns: 1, Results: t.TempDir()},
	} {
		if _, err := bench.Ladder(t.Context(), o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %s", err, says)
		}
	}
}
