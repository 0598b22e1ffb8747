package shape

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// small makes the diff rule apply to short texts.
func small(o *Options) { o.CompactAboveChars = 0 }

func TestDiffKeepsEveryChange(t *testing.T) {
	ctx := func(n int) string { return strings.Repeat(" a line of context that is rather long\n", n) }
	two := " a line of context that is rather long\n a line of context that is rather long\n"
	for _, tt := range []struct{ name, in, want string }{
		{"git show",
			"commit 0123456789abcdef\nAuthor: A <a@example.org>\n\n    What it is for.\n\n    -not a change\n\ndiff --git a/a b/b\nsimilarity index 90%\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1,12 +1,13 @@ func f() {\n" +
				ctx(6) + "-old\n+new\n+newer\n" + ctx(5) + "diff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\ndiff --git a/run b/run\nold mode 100644\nnew mode 100755\n",
			"commit 0123456789abcdef\nAuthor: A <a@example.org>\n\n    What it is for.\n\n    -not a change\n\ndiff --git a/a b/b\nsimilarity index 90%\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1,12 +1,13 @@ func f() {\n" +
				"[4 unchanged]\n" + two + "-old\n+new\n+newer\n" + two + "[3 unchanged]\ndiff --git a/x.png b/x.png\nindex 1..2 100644\nBinary files a/x.png and b/x.png differ\ndiff --git a/run b/run\nold mode 100644\nnew mode 100755\n"},
		{"diff -ru",
			"$ diff -ru a b\ndiff -ru a/f b/f\n--- a/f\t2026-01-01\n+++ b/f\t2026-01-02\n@@ -1,11 +1,11 @@\n" + ctx(10) + "--- a removed line that looks like a header\n+++ an added one\nOnly in b: g\n",
			"$ diff -ru a b\ndiff -ru a/f b/f\n--- a/f\t2026-01-01\n+++ b/f\t2026-01-02\n@@ -1,11 +1,11 @@\n[8 unchanged]\n" + two + "--- a removed line that looks like a header\n+++ an added one\nOnly in b: g\n"},
		{"changes near each other share their context",
			"--- a\n+++ b\n@@ -1,7 +1,7 @@\n-a\n+b\n" + ctx(5) + "-c\n+d\n",
			"--- a\n+++ b\n@@ -1,7 +1,7 @@\n-a\n+b\n" + two + "[1 unchanged]\n" + two + "-c\n+d\n"},
		{"short context is not replaced by something longer",
			"--- a\n+++ b\n@@ -1,8 +1,8 @@\n-a\n+b\n 1\n 2\n 3\n 4\n 5\n 6\n-c\n+d\n" + ctx(0) + "@@ -100,30 +100,31 @@\n+e\n" + ctx(30),
			"--- a\n+++ b\n@@ -1,8 +1,8 @@\n-a\n+b\n 1\n 2\n 3\n 4\n 5\n 6\n-c\n+d\n@@ -100,30 +100,31 @@\n+e\n" + two + "[28 unchanged]\n"},
		{"no newline at the end of the file",
			"--- a\n+++ b\n@@ -1,9 +1,9 @@\n" + ctx(8) + "-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file",
			"--- a\n+++ b\n@@ -1,9 +1,9 @@\n[6 unchanged]\n" + two + "-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file"},
		{"returns are a part of the change",
			"--- a\n+++ b\n@@ -1,9 +1,9 @@\n" + ctx(8) + "-a\r\n+b\r\n",
			"--- a\n+++ b\n@@ -1,9 +1,9 @@\n[6 unchanged]\n" + two + "-a\r\n+b\r\n"},
		{"a merge",
			"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,9 -1,9 +1,10 @@@\n" + strings.ReplaceAll(ctx(8), " a line", "  a line") + "- a\n -b\n++c\n",
			"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1,9 -1,9 +1,10 @@@\n[6 unchanged]\n" + strings.ReplaceAll(two, " a line", "  a line") + "- a\n -b\n++c\n"},
		{"colours",
			"\x1b[1mdiff --git a/f b/f\x1b[m\n\x1b[1m--- a/f\x1b[m\n\x1b[1m+++ b/f\x1b[m\n\x1b[36m@@ -1,9 +1,9 @@\x1b[m\n" + ctx(8) + "\x1b[31m-a\x1b[m\n\x1b[32m+b\x1b[m\n",
			"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n[6 unchanged]\n" + two + "-a\n+b\n"},
		{"blanks lost from empty context",
			"--- a\n+++ b\n@@ -1,12 +1,12 @@\n" + ctx(4) + "\n\n\n\n" + ctx(3) + "-a\n+b\n-- \n2.40\n",
			"--- a\n+++ b\n@@ -1,12 +1,12 @@\n[9 unchanged]\n" + two + "-a\n+b\n-- \n2.40\n"},
		{"cut off in a hunk",
			"--- a\n+++ b\n@@ -1,90 +1,90 @@\n-a\n+b\n" + ctx(9),
			"--- a\n+++ b\n@@ -1,90 +1,90 @@\n-a\n+b\n" + two + "[7 unchanged]\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := checkSound(t, ladder(t, small), "t", tt.in, false)
			if r.Rule != RuleDiff || r.Text != tt.want {
				t.Errorf("%s:\n%s\nwant\n%s", r.Rule, r.Text, tt.want)
			}
		})
	}
}

func TestWhatIsNoDiff(t *testing.T) {
	for name, in := range map[string]string{
		"a hunk without a file":     "@@ -1,2 +1,2 @@\n-a\n+b\n" + strings.Repeat(" c\n", 40),
		"a file without a hunk":     "--- a\n+++ b\n" + strings.Repeat(" c\n", 40),
		"numbers that are none":     "--- a\n+++ b\n@@ -x,2 +1,2 @@\n" + strings.Repeat(" c\n", 40),
		"yaml":                      "---\n- a\n- b\n+++\n" + strings.Repeat(" c\n", 40),
		"numbers of another planet": "--- a\n+++ b\n@@ -1,99999999999999999999 +1,2 @@\n" + strings.Repeat(" c\n", 40),
		"one in a long report":      log(100) + "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n" + log(100),
	} {
		if _, ok := ladder(t).diff(in); ok {
			t.Errorf("%s is called a diff", name)
		}
	}
}

// A diff in which nothing can be dropped stays, its blanks too.
func TestDiffThatIsAllChange(t *testing.T) {
	text := "--- a\n+++ b\n@@ -0,0 +1,900 @@\n" + strings.Repeat("+same line   \n", 900)
	if r := checkSound(t, ladder(t), "t", text, false); r.Changed {
		t.Errorf("%s: %.200s", r.Rule, r.Text)
	}
}

func TestDiffOfABundleIsBounded(t *testing.T) {
	text := "--- a\n+++ b\n@@ -1 +1 @@\n-" + strings.Repeat("a", 50_000) + "\n+" + strings.Repeat("b", 50_000) + "\n"
	r := checkSound(t, ladder(t), "t", text, false)
	if r.Rule != RuleDiff || r.Shown > 9_200 || !strings.Contains(r.Text, "\n-aaa") || !strings.Contains(r.Text, "\n+bbb") {
		t.Errorf("%s, %d characters", r.Rule, r.Shown)
	}
}

// git itself is the second opinion: the shaped diff of real files has the
// same changed lines, in the same order.
func TestDiffOfGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("no git")
	}
	dir := t.TempDir()
	was := log(400)
	is := strings.NewReplacer("step 100 ", "STEP 100 ", "step 103 ", "STEP 103 ", "step 300 ", "").Replace(was)
	for name, text := range map[string]string{"a": was, "b": is + "one more\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(git, "diff", "--no-index", "-U40", "a", "b")
	cmd.Dir = dir
	out, _ := cmd.Output() // it exits with 1, since they differ
	r := checkSound(t, ladder(t), "t", string(out), false)
	changes := func(s string) (list []string) {
		for line := range strings.Lines(s) {
			if line[0] == '+' || line[0] == '-' || line[0] == '@' {
				list = append(list, line)
			}
		}
		return list
	}
	was, is = strings.Join(changes(string(out)), ""), strings.Join(changes(r.Text), "")
	if r.Rule != RuleDiff || was != is || len(was) == 0 {
		t.Errorf("%s: changes\n%s\nbecame\n%s", r.Rule, was, is)
	}
}
