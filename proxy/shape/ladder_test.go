package shape

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestFirstRuleThatMatches(t *testing.T) {
	long := strings.Repeat("word ", 400)
	code := strings.Repeat("\tresult = compute(left, right)\n", 900)
	for _, tt := range []struct {
		name, tool, text string
		failed           bool
		rule             Rule
		lossy            bool
	}{
		{"exempt by default", "read", log(1000), false, RuleExempt, false},
		{"exempt, an error", "retrieve_spill", log(1000), true, RuleExempt, false},
		{"exempt, other case", "Read_Skill", log(1000), false, RuleExempt, false},
		{"file text by name", "read_text_file", log(1000), false, RuleExempt, false},
		{"contents by name", "get_file_contents", csv(2000), false, RuleExempt, false},
		{"file text in camelCase", "readFile", log(1000), false, RuleExempt, false},
		{"about a file", "get_file_info", log(1000), false, RuleShell, true},
		{"reads no file", "read_graph", log(1000), false, RuleShell, true},
		{"long error", "t", long, true, RuleError, true},
		{"error of 300", "t", strings.Repeat("x", 300), true, RuleSmall, false},
		{"error that would not get shorter", "t", strings.Repeat("x", 301), true, RuleUnchanged, false},
		{"error that is a diff", "t", gitDiff(10), true, RuleError, true},
		{"nothing", "t", "", false, RuleSmall, false},
		{"1,199", "t", strings.Repeat("é", 1199), false, RuleSmall, false},
		{"1,199 with colours", "t", "\x1b[31m" + strings.Repeat("é", 1194), false, RuleSmall, false},
		{"1,200 with nothing to clean", "t", strings.Repeat("é", 1200), false, RuleUnchanged, false},
		{"1,200 with colours", "t", "\x1b[31m" + strings.Repeat("é", 1200), false, RuleClean, false},
		{"git diff", "t", gitDiff(10), false, RuleDiff, true},
		{"short diff", "t", gitDiff(2), false, RuleDiff, true},
		{"a log with a diff in it", "t", log(500) + gitDiff(1) + log(500), false, RuleShell, true},
		{"a text about hunks", "t", strings.Repeat("the header @@ -1,2 +1,2 @@ begins it\n", 400), false, RuleShell, true},
		{"json array", "t", jsonArray(400), false, RuleJSON, true},
		{"json array for lines", "curl", jsonArray(400), false, RuleShell, true},
		{"json array under 10,000", "t", jsonArray(100), false, RuleUnchanged, false},
		{"json array of 10", "t", "[" + strings.Repeat(quoted(t, strings.Repeat("x", 1500))+",", 9) + `""]`, false, RuleLine, true},
		{"json object", "t", `{"items":` + jsonArray(400) + `}`, false, RuleShell, true},
		{"broken json", "t", strings.TrimSuffix(jsonArray(400), "]"), false, RuleShell, true},
		{"two arrays", "t", jsonArray(400) + jsonArray(400), false, RuleShell, true},
		{"log in brackets", "t", strings.ReplaceAll(log(500), "step", "[step]"), false, RuleShell, true},
		{"items that are no json", "t", "[" + strings.TrimSuffix(strings.Repeat("an item of words,\n", 900), ",\n") + "]", false, RuleShell, true},
		{"csv", "t", csv(1500), false, RuleCSV, true},
		{"csv with bom", "t", "\uFEFF" + csv(1500), false, RuleCSV, true},
		{"tsv", "t", strings.Repeat("a\tb c\td\n", 10) + "k\tv\tw\n" + strings.Repeat("1\t2, 3\t4\n", 2000), false, RuleCSV, true},
		{"semicolons", "t", "a;b\n" + strings.Repeat("1,5;2,5\n", 2000), false, RuleCSV, true},
		{"csv under 10,000", "t", "a,b\n" + strings.Repeat("1,2\n", 2000), false, RuleShell, true},
		{"csv of few rows", "t", "a,b\n" + strings.Repeat("1,\""+strings.Repeat("x", 3000)+"\"\n", 6), false, RuleShell, true},
		{"code with a comma a line", "t", code, false, RuleShell, true},
		{"code at the margin", "t", strings.ReplaceAll(code, "\t", ""), false, RuleShell, true},
		{"pairs in code", "t", strings.Repeat("    \"key\": \"value\",\n", 900), false, RuleShell, true},
		{"imports", "t", "import os, sys\n" + strings.Repeat("from a import b, c\n", 900), false, RuleShell, true},
		{"statements", "t", "f(a), b;\n" + strings.Repeat("g(a), b;\n", 2000), false, RuleShell, true},
		{"prose", "t", "Dear reader, welcome\n" + strings.Repeat("It rains, it pours\n", 900), false, RuleShell, true},
		{"rows of different length", "t", "a,b\n" + strings.Repeat("1,2\n1,2,3\n", 2000), false, RuleShell, true},
		{"quotes that do not close", "t", "a,b\n" + strings.Repeat("1,\"2\n", 2000) + "\"", false, RuleShell, true},
		{"log", "t", log(3000), false, RuleShell, true},
		{"100 short lines", "t", strings.Repeat("x", 79) + "\n" + log(20) + strings.Repeat(strings.Repeat("y", 99)+"z\n", 70), false, RuleClean, true},
		{"one giant line", "t", strings.Repeat("<td>x</td>", 5000), false, RuleLine, true},
		{"one giant line and its end", "t", strings.Repeat("<td>x</td>", 5000) + "\n", false, RuleLine, true},
		{"a line of 7,999", "t", strings.Repeat("x", 7999), false, RuleUnchanged, false},
		{"few lines, one giant", "t", "begin\n" + strings.Repeat("x", 100_000) + "\n[exit code: 1]", false, RuleShell, true},
		{"repeats", "t", strings.Repeat("waiting for the server\n", 100), false, RuleClean, true},
		{"returns", "t", strings.ReplaceAll(log(40), "\n", "\r\n"), false, RuleClean, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := ladder(t, func(o *Options) { o.ShellTools = []string{"curl"} })
			r := checkSound(t, l, tt.tool, tt.text, tt.failed)
			if r.Rule != tt.rule || r.Lossy != tt.lossy {
				t.Errorf("rule %s, lossy %v, %d of %d; want %s, %v\n%.600s", r.Rule, r.Lossy, r.Shown, r.Of, tt.rule, tt.lossy, r.Text)
			}
		})
	}
}

func TestErrorShowsBothEnds(t *testing.T) {
	text := strings.Repeat("a", 500) + strings.Repeat("ü", 500)
	r := ladder(t).Text("t", text, true)
	if want := strings.Repeat("a", 200) + " [... 700 characters left out ...] " + strings.Repeat("ü", 100); r.Text != want {
		t.Errorf("got %q", r.Text)
	}
	if r := ladder(t).Text("t", text, false); r.Changed {
		t.Errorf("no error, and changed by %s", r.Rule)
	}
}

func TestOneGiantLine(t *testing.T) {
	text := strings.Repeat("a", 20_000) + strings.Repeat("😀", 20_000)
	r := ladder(t).Text("t", text, false)
	if want := strings.Repeat("a", 3000) + " [... 35500 characters left out ...] " + strings.Repeat("😀", 1500); r.Text != want {
		t.Errorf("%d characters: %.80q", r.Shown, r.Text)
	}
}

func TestGiantLineAmongOthersGetsWhatOneWouldGet(t *testing.T) {
	r := ladder(t).Text("t", "begin\n"+strings.Repeat("a", 50_000)+"\nend\n", false)
	if want := "begin\n" + strings.Repeat("a", 3000) + " [... 45500 characters left out ...] " + strings.Repeat("a", 1500) + "\nend\n"; r.Text != want {
		t.Errorf("%d characters: %.80q", r.Shown, r.Text)
	}
}

func TestShellShowsHeadSamplesTail(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(log(3000), "\n"), "\n")
	lines[1500] = "\x1b[31mERROR: cannot find module\x1b[0m"
	lines[1700] = "[exit code: 2]"
	lines[1800] = "/src/errors/error.go is no error-prone file, 0errors"
	lines[1900] = "java.lang.TypeError: x"
	r := ladder(t).Text("t", strings.Join(lines, "\n"), false)
	got := strings.Split(r.Text, "\n")
	if want := 40 + 1 + 20 + 3 + 1 + 40; len(got) != want {
		t.Fatalf("%d lines, want %d:\n%s", len(got), want, r.Text)
	}
	for i := range 40 {
		if got[i] != lines[i] || got[len(got)-1-i] != lines[len(lines)-1-i] {
			t.Errorf("line %d of an end is not what came", i)
		}
	}
	if got[40] != "[2920 of 3000 lines left out but for samples, by line number:]" || got[64] != "[last 40 lines:]" {
		t.Errorf("titles are %q and %q", got[40], got[64])
	}
	last := 40
	for _, line := range got[41:64] {
		var n int
		if _, err := fmt.Sscanf(line, "%d: ", &n); err != nil || n <= last || n > 2960 {
			t.Errorf("sample %q behind %d", line, last)
			continue
		}
		if bare, _ := stripANSI(lines[n-1]); line != fmt.Sprintf("%d: %s", n, bare) {
			t.Errorf("sample %q is not line %d", line, n)
		}
		last = n
	}
	for _, want := range []string{"1501: ERROR: cannot", "1701: [exit code: 2]", "1901: java.lang.TypeError: x"} {
		if !strings.Contains(r.Text, "\n"+want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(r.Text, "1801: ") {
		t.Error("a path counts as an error")
	}
}

func TestErrorsInTheMiddleAreBounded(t *testing.T) {
	text := log(100) + strings.Repeat("error: again\n", 5000) + log(100)
	r := checkSound(t, ladder(t), "t", text, false)
	if n := strings.Count(r.Text, ": error: again\n"); n < 2*keptErrors || n > 2*keptErrors+20 {
		t.Errorf("%d error lines are shown", n)
	}
	for _, want := range []string{"\n101: error", "\n110: error", "\n5091: error", "\n5100: error"} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestMarkersAreAlwaysShown(t *testing.T) {
	for _, line := range []string{"[exit code: 0]", "  [Exit Code: 137]", "exit status 1", "[timed out after 30 s]", "exited with 3", "[signal: killed]"} {
		r := ladder(t).Text("t", log(777)+line+"\n"+log(999), false)
		if !strings.Contains(r.Text, "778: "+strings.TrimRight(line, " ")+"\n") {
			t.Errorf("%q is not shown", line)
		}
	}
}

func TestNumbersCountLongLinesInPieces(t *testing.T) {
	text := log(50) + strings.Repeat("a", 2*LinePiece+1) + "\n" + log(1000) + "[exit code: 3]\n" + log(100)
	r := ladder(t).Text("t", text, false)
	if !strings.Contains(r.Text, "\n1054: [exit code: 3]\n") {
		t.Errorf("the marker has no number 1054:\n%s", r.Text)
	}
}

func TestInvalidTextCopes(t *testing.T) {
	bad := strings.Repeat("\xff\xfe line \x80 of \xed\xa0\x80 something\n", 1000)
	r := checkSound(t, ladder(t), "t", bad, false)
	if r.Rule != RuleShell || !r.Lossy || !strings.Contains(r.Text, "\uFFFD line \uFFFD of") {
		t.Errorf("%s, lossy %v: %.100q", r.Rule, r.Lossy, r.Text)
	}
	small := strings.Repeat("\xff", 3000)
	if r := checkSound(t, ladder(t), "t", small, false); r.Changed {
		t.Errorf("nothing to shape, and %s changed it", r.Rule)
	}
}

func TestInvalidGiantLinesCope(t *testing.T) {
	for _, part := range []string{"\xff", "\x80", "a\xed\xa0\x80", "é\xc3"} {
		for _, open := range []string{"", "[", `["`} {
			text := open + strings.Repeat(part, giantLine/len(part)+1)
			for _, closing := range []string{"", "]", `"]`} {
				r := ladder(t).Text("t", text+closing, false)
				if r.Rule != RuleLine || !r.Lossy || !utf8.ValidString(r.Text) || r.Shown > 4_600 || r.Of < giantLine/4 {
					t.Errorf("%q%q%q: %s, shown %d of %d", open, part, closing, r.Rule, r.Shown, r.Of)
				}
			}
		}
	}
}

func TestInvalidGiantLineThatIsOnlyCleaned(t *testing.T) {
	l := ladder(t, func(o *Options) { o.ShellMinChars = maxOption })
	r := l.Text("t", "\x1b[1m"+strings.Repeat("a\xff", giantLine), false)
	if r.Rule != RuleClean || !r.Lossy || !utf8.ValidString(r.Text) || r.Shown > r.Of {
		t.Errorf("%s, lossy %v, shown %d of %d", r.Rule, r.Lossy, r.Shown, r.Of)
	}
	array := "[" + strings.Repeat("\"a\xff\",", giantLine/5) + "1]"
	if r := ladder(t).Text("t", array, false); r.Rule != RuleJSON || !utf8.ValidString(r.Text) {
		t.Errorf("%s: %.200q", r.Rule, r.Text)
	}
}

func TestChars(t *testing.T) {
	for _, s := range []string{"", "a", "aé漢😀", strings.Repeat("aé漢😀", 999), "\uFFFD12345678", strings.Repeat("é", 8)} {
		if got, want := chars(s), len([]rune(s)); got != want {
			t.Errorf("%.20q: %d, want %d", s, got, want)
		}
		for n := range 12 {
			r := []rune(s)
			if got, want := first(s, n), string(r[:min(n, len(r))]); got != want {
				t.Errorf("first %d of %.20q: %q", n, s, got)
			}
			if got, want := last(s, n), string(r[len(r)-min(n, len(r)):]); got != want {
				t.Errorf("last %d of %.20q: %q", n, s, got)
			}
		}
	}
}
