package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// forgedDir holds foreign tokens, which are no part of the repository.
func forgedDir(t *testing.T) string {
	t.Helper()
	root := os.Getenv("TOOL_GUARDIAN_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "..", "shared")
	}
	dir := filepath.Join(root, "tsa", "forged")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no foreign tokens in %s", dir)
	}
	return dir
}

// Every forged token is judged at the command line as it must be: 0 for a
// valid one, 1 with a rule for the rest, and never another exit.
func TestVerifyForgedTokens(t *testing.T) {
	dir := forgedDir(t)
	b, err := os.ReadFile(filepath.Join(dir, "cases.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ File, Case, Want string }
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) < 61 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range cases {
		t.Run(c.Case, func(t *testing.T) {
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"tsa", "verify", "--token", in(c.File), "--data", in("msg"), "--ca", in("root.pem"),
				"--request", in("q.tsq"), "--json"}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs,
				Now:    func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) },
				Getenv: func(string) string { return "" }, Environ: func() []string { return nil }})
			var got tokenJSON
			if err := json.Unmarshal(out.Bytes(), &got); err != nil {
				t.Fatalf("exit %d, %v: %s%s", code, err, out.String(), errs.String())
			}
			want, wantCode := "refused", Failed
			if c.Want == "accept" {
				want, wantCode = "valid", OK
			}
			if code != wantCode || got.Verdict != want || (got.Rule == "") != (want == "valid") {
				t.Errorf("exit %d, %+v; want %s", code, got, want)
			}
		})
	}
}
