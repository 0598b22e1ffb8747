package shape

import (
	"reflect"
	"strings"
	"testing"
)

func TestOptionsOfTheConfiguration(t *testing.T) {
	for _, in := range []string{"", "null", "{}"} {
		if o, err := ParseOptions([]byte(in)); err != nil || !reflect.DeepEqual(o, Defaults()) {
			t.Errorf("%q: %+v %v", in, o, err)
		}
	}
	o, err := ParseOptions([]byte(`{"compact_above_chars":1,"error_summary_chars":2,"struct_min_chars":3,"shell_min_chars":4,
		"shell_head_lines":5,"shell_tail_lines":6,"shell_sample_lines":0,"struct_keep_items":8,"diff_context_lines":9,
		"char_head":10,"char_tail":11,"exempt_tools":["a*"],"shell_tools":["b"],"exempt_file_text":false}`))
	want := Options{1, 2, 3, 4, 5, 6, 0, 8, 9, 10, 11, []string{"a*"}, false, []string{"b"}}
	if err != nil || !reflect.DeepEqual(o, want) {
		t.Errorf("%+v %v", o, err)
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	for in, says := range map[string]string{
		`{"shell_head":1}`:              "shell_head is no key",
		`{"char_head":"1"}`:             `char_head is "1"`,
		`{"char_head":1.5}`:             "char_head is 1.5",
		`{"char_head":-1}`:              "char_head is -1",
		`{"char_head":99999999999}`:     "char_head is 99999999999",
		`{"exempt_tools":"read"}`:       "list of tool names",
		`{"exempt_file_text":1}`:        "true or false",
		`{"char_head":0,"char_tail":0}`: "both 0",
		`[]`:                            "toolGuardian.ladder",
		`{"char_head":1`:                "toolGuardian.ladder",
	} {
		if _, err := ParseOptions([]byte(in)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", in, err)
		}
	}
	if _, err := New(Options{}); err == nil {
		t.Error("options that show nothing were taken")
	}
}

func TestOptionsAreCopied(t *testing.T) {
	o := Defaults()
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	o.ExemptTools[0] = "t"
	if r := l.Text("t", log(1000), false); r.Rule != RuleShell {
		t.Errorf("a later change of the caller's list counts: %s", r.Rule)
	}
}

func TestSettingsCount(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Options)
		tool   string
		text   string
		rule   Rule
		holds  string
	}{
		{"exempt prefix", func(o *Options) { o.ExemptTools = []string{"GIT_*"} }, "git_log", log(999), RuleExempt, "step 500 "},
		{"named, not prefix", func(o *Options) { o.ExemptTools = []string{"git"} }, "git_log", log(999), RuleShell, ""},
		{"file text not exempt", func(o *Options) { o.ExemptFileText = false }, "read_file", log(999), RuleShell, ""},
		{"no samples", func(o *Options) { o.ShellSampleLines = 0 }, "t", log(999), RuleShell, "\n[919 of 999 lines"},
		{"no ends", func(o *Options) { o.ShellHeadLines, o.ShellTailLines = 0, 0 }, "t", log(999), RuleShell, "[999 of 999 lines"},
		{"one item", func(o *Options) { o.StructKeepItems = 1 }, "t", jsonArray(400), RuleJSON, "[398 items left out]\nlast 1 item:"},
		{"no item", func(o *Options) { o.StructKeepItems = 0 }, "t", jsonArray(400), RuleJSON, "[400 items left out]"},
		{"no row", func(o *Options) { o.StructKeepItems = 0 }, "t", csv(1000), RuleCSV, "[1000 rows left out]"},
		{"no context", func(o *Options) { o.DiffContextLines = 0 }, "t", gitDiff(5), RuleDiff, "@@\x20func f0() {\n[10 unchanged]\n-old 0\n"},
		{"long lines", func(o *Options) { o.CharHead, o.CharTail = 10, 0 }, "t", strings.Repeat("x", 9000), RuleLine, "xxxxxxxxxx [... 8990 characters left out ...] "},
		{"earlier", func(o *Options) { o.ShellMinChars = 2000 }, "t", strings.Repeat("x", 6000), RuleLine, "[... 1500 "},
		{"json earlier", func(o *Options) { o.StructMinChars = 1300 }, "t", jsonArray(60), RuleJSON, "60 items"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := checkSound(t, ladder(t, tt.change), tt.tool, tt.text, false)
			if r.Rule != tt.rule || !strings.Contains(r.Text, tt.holds) {
				t.Errorf("%s: %.900s", r.Rule, r.Text)
			}
		})
	}
}

func TestFileTextByName(t *testing.T) {
	for name, want := range map[string]bool{
		"read_file": true, "read_text_file": true, "read_multiple_files": true, "get_file_contents": true, "getFileContent": true,
		"view-file": true, "fs.readFile": true, "ReadFile": true, "file_read": true, "cat_file": true, "download_file": true,
		"get_file_info": false, "list_files": false, "search_files": false, "read_graph": false, "write_file": false, "delete_file": false,
		"get_pull_request_files_list": false, "read_log": false, "profile_read": false, "": false, "read": false,
	} {
		if got := fileText(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
