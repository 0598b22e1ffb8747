package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	outputs "toolguardian/proxy/shape"
	"toolguardian/proxy/wire"
)

// LadderOptions of Ladder.
type LadderOptions struct {
	Results  string    // a folder of recorded results, each a JSON file with request and result; empty: none
	Bytes    int       // length of the giant line
	Turns    int       // of its measurement
	Progress *Progress // nil: silent
}

// LadderReport tells what the output ladder leaves of results, and what it costs.
type LadderReport struct {
	Machine Machine      `json:"machine"`
	Made    []Shaped     `json:"made"`     // typical results, generated
	Real    []Shaped     `json:"recorded"` // of LadderOptions.Results
	Giant   []GiantShape `json:"giant"`
	Aims    []Aim        `json:"aims"`
}

// Shaped is one result before and after. Characters are code points of all
// its text blocks, the line that says what was left out included in Shown.
type Shaped struct {
	Name  string   `json:"name"`
	Tool  string   `json:"tool"`
	Rules []string `json:"rules"` // empty: it stays as it came
	Of    int      `json:"originalChars"`
	Shown int      `json:"shownChars"`
}

// GiantShape is a text of one long line beside copying it twice, in turns.
type GiantShape struct {
	Name      string  `json:"name"`
	Bytes     int     `json:"bytes"`
	Rule      string  `json:"rule"`
	Shape     Micros  `json:"shapeMicros"`
	CopyTwice Micros  `json:"copyTwiceMicros"`
	Times     float64 `json:"times"`
}

// maxTimes is the aim for a giant line.
const maxTimes = 3

// Ladder measures the output ladder with its default options.
func Ladder(ctx context.Context, o LadderOptions) (r LadderReport, err error) {
	for flag, n := range map[string]int{"bytes": o.Bytes, "turns": o.Turns} {
		if err := positive(flag, n); err != nil {
			return r, err
		}
	}
	l, err := outputs.New(outputs.Defaults())
	if err != nil {
		return r, err
	}
	r.Machine = thisMachine()
	for _, m := range madeResults() {
		r.Made = append(r.Made, shaped(l, m.name, m.tool, textResult(m.text)))
	}
	if o.Results != "" {
		if r.Real, err = realResults(l, o.Results); err != nil {
			return r, err
		}
	}
	for i, g := range giants(o.Bytes) {
		o.Progress.step("shaping", i, len(giants(0)))
		if err := ctx.Err(); err != nil {
			return r, err
		}
		s := measureGiant(l, g.name, g.text, o.Turns)
		r.Giant = append(r.Giant, s)
		r.Aims = append(r.Aims, atMost("a giant line, "+g.name, s.Times, maxTimes, "x copying it twice"))
	}
	return r, nil
}

// textResult is a tools/call result of one text block.
func textResult(text string) json.RawMessage {
	return slices.Concat([]byte(`{"content":[{"type":"text","text":`), wire.Quote(text), []byte(`}]}`))
}

// shaped sends a result down the ladder.
func shaped(l *outputs.Ladder, name, tool string, raw json.RawMessage) Shaped {
	keep := func(outputs.Original) (string, error) { return "sp_0123456789ab", nil }
	a := l.Apply(outputs.Call{Tool: tool}, raw, keep)
	s := Shaped{Name: name, Tool: tool, Rules: []string{}, Of: a.Of, Shown: a.Shown + len([]rune(a.Notice))}
	for _, rule := range a.Rules {
		s.Rules = append(s.Rules, string(rule))
	}
	if a.Of == 0 { // left alone without a look at its texts
		s.Of = textChars(raw)
		s.Shown = s.Of
	}
	return s
}

// textChars counts the characters of all text blocks.
func textChars(raw json.RawMessage) (n int) {
	blocks, _ := wire.Elements(wire.Get(raw, "content"))
	for _, b := range blocks {
		if kind, _ := wire.GetString(b, "type"); kind == "text" {
			text, _ := wire.GetString(b, "text")
			n += len([]rune(text))
		}
	}
	return n
}

// realResults shapes every recorded result of a folder, by file name.
func realResults(l *outputs.Ladder, dir string) ([]Shaped, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	list := []Shaped{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		raw := wire.Get(b, "result")
		if len(raw) == 0 || raw[0] != '{' || textChars(raw) == 0 {
			continue // an error, or nothing to read
		}
		tool, _ := wire.GetString(b, "request", "name")
		list = append(list, shaped(l, strings.TrimSuffix(filepath.Base(file), ".json"), tool, raw))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s holds no recorded result with text: give a folder of JSON files with a request and a result each", dir)
	}
	return list, nil
}

type namedText struct{ name, tool, text string }

// madeResults are four results as tools often give them.
func madeResults() []namedText {
	var log, table strings.Builder
	items := make([]string, 400)
	for i := range 3_000 {
		line := fmt.Sprintf("[%05d] compiling module core/part_%d (%d ms)", i, i, i*37%1000)
		if i == 1_700 {
			line = "ERROR: core/part_1700: undefined symbol"
		}
		log.WriteString(line + "\n")
	}
	log.WriteString("[exit code: 1]\n")
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":%d,"name":"item %d","state":"open","owner":"team %d"}`, i, i, i%7)
	}
	table.WriteString("id,name,price,stock\n")
	for i := range 1_500 {
		fmt.Fprintf(&table, "%d,\"Item, number %d\",%d.50,%d\n", i, i, i*137%10_000, i%50)
	}
	return []namedText{
		{"build log of 3,000 lines, one error", "bash", log.String()},
		{"JSON array of 400 items", "http_get", "[" + strings.Join(items, ",\n") + "]"},
		{"unified diff of 3 hunks", "git_diff", madeDiff()},
		{"CSV of 1,500 rows", "query", table.String()},
	}
}

func madeDiff() string {
	var b strings.Builder
	b.WriteString("diff --git a/main.c b/main.c\nindex 1111111..2222222 100644\n--- a/main.c\n+++ b/main.c\n")
	for i := range 3 {
		fmt.Fprintf(&b, "@@ -%d,301 +%d,301 @@ int part_%d(void)\n", 1+i*400, 1+i*400, i)
		for j := range 301 {
			if j == 150 {
				fmt.Fprintf(&b, "-\treturn before(%d);\n+\treturn after(%d);\n", i, i)
				continue
			}
			fmt.Fprintf(&b, " \tstatement_number_%d(of, this, function);\n", j)
		}
	}
	return b.String()
}

// giants are lines of about n bytes, each one for another rule to look at.
func giants(n int) []namedText {
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	entry := `{"name":"file-0123.js","type":"file","children":[{"name":"LICENSE","type":"file"}]},`
	return []namedText{
		{name: "minified script", text: fill(`function(a,b){return a?"x":b[0]};`)},
		{name: "text of two scripts", text: fill("aé漢 word ")},
		{name: "JSON object", text: `{"tree":[` + strings.TrimSuffix(fill(entry), ",") + "]}"},
		{name: "JSON array", text: "[" + strings.TrimSuffix(fill(entry), ",") + "]"},
	}
}

// measureGiant takes the best of several turns of each, since anything else
// on the machine only adds.
func measureGiant(l *outputs.Ladder, name, text string, turns int) GiantShape {
	var shapes, copies sample
	var rule outputs.Rule
	for range turns {
		copies.take(copyTwice(text))
		begin := time.Now()
		rule = l.Text("tool", text, false).Rule
		shapes.take(time.Since(begin))
	}
	best, copied := slices.Min(shapes.took), slices.Min(copies.took)
	return GiantShape{name, len(text), string(rule), micros(best), micros(copied), round(ratio(float64(best), float64(copied)))}
}

// copyTwice copies into fresh memory, as whatever holds on to a text must.
func copyTwice(text string) time.Duration {
	begin := time.Now()
	for range 2 {
		fresh := make([]byte, len(text))
		copy(fresh, text)
		runtime.KeepAlive(fresh)
	}
	return time.Since(begin)
}

// WriteText renders the report for people.
func (r LadderReport) WriteText(w io.Writer) error {
	p := newPage(w, r.Machine, "output ladder: characters of a result, as it came and as it is shown")
	p.shaped("typical, made here", r.Made)
	if len(r.Real) > 0 {
		p.shaped("recorded", r.Real)
	}
	p.line("one line\trule\tbytes\tshaped µs\tcopied twice µs\ttimes")
	for _, g := range r.Giant {
		p.line("%s\t%s\t%d\t%.0f\t%.0f\t%v", g.Name, g.Rule, g.Bytes, g.Shape, g.CopyTwice, g.Times)
	}
	return p.aims(r.Aims)
}

func (p page) shaped(title string, list []Shaped) {
	p.line("%s\ttool\toriginal\tshown\trules", title)
	for _, s := range list {
		rules := strings.Join(s.Rules, ", ")
		if rules == "" {
			rules = "as it came"
		}
		p.line("%s\t%s\t%d\t%d\t%s", s.Name, s.Tool, s.Of, s.Shown, rules)
	}
	p.line("")
}
