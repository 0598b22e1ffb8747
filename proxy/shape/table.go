package shape

import (
	"fmt"
	"strings"
)

// table sums up separated values (RFC 4180, with comma, semicolon or tab): the
// header, how many rows, the first and the last of them.
func (l *Ladder) table(text string) (string, bool) {
	s := strings.TrimPrefix(text, "\uFEFF")
	line, _, _ := strings.Cut(s, "\n")
	delim, columns := delimiter(strings.TrimSuffix(line, "\r"))
	if columns < 2 {
		return "", false
	}
	t := tableRows{ends: ends{keep: l.o.StructKeepItems}, delim: delim, columns: columns}
	if !t.read(s) || t.count <= max(10, 2*t.keep) || !t.plausible() {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s of %s\nheader:\n%s\n", delimName[delim], size(t.count, "row"), size(columns, "column"), l.row(t.header))
	t.write(&b, "row", l.row)
	return b.String(), true
}

var delimName = map[byte]string{',': "CSV", ';': "CSV with ;", '\t': "TSV"}

func (l *Ladder) row(s string) string { return l.o.bound(s, maxLine) }

// maxHeader is how long a header's line may be.
const maxHeader = 8 << 10

// delimiter is what separates a header's columns, and how many those are:
// none of what is no header.
func delimiter(line string) (byte, int) {
	if len(line) > maxHeader {
		return 0, 0
	}
	best, columns := byte(0), 0
	for _, d := range []byte{'\t', ';', ','} {
		names, ok := fields(line, d)
		if ok && len(names) > columns && headerNames(names) {
			best, columns = d, len(names)
		}
	}
	return best, columns
}

// fields splits a line, and takes the quotes off.
func fields(line string, delim byte) ([]string, bool) {
	var names []string
	for i := 0; ; i++ {
		end, _, ok := field(line, i, delim)
		if !ok {
			return nil, false
		}
		names = append(names, strings.Trim(line[i:end], `"`))
		if i = end; i == len(line) {
			return names, true
		}
	}
}

// headerNames says that a header could name columns so: each differently, in
// few words, without what only code has.
func headerNames(names []string) bool {
	seen := map[string]bool{}
	for _, name := range names {
		name = strings.TrimSpace(name)
		if name == "" || seen[name] || len(name) > 4*maxName || chars(name) > maxName ||
			strings.ContainsAny(name, "={}\\\"<>`") || !balanced(name) {
			return false
		}
		seen[name] = true
	}
	return names[0] == strings.TrimLeft(names[0], " \t")
}

// tableRows reads rows and gathers what speaks against them being rows.
type tableRows struct {
	ends
	delim   byte
	columns int
	header  string

	indented int // rows that begin with a blank
	spaced   int // rows whose second field does
	code     int // rows with what only code has
	again    int // rows that are the header once more
}

// read reads all rows. It says no to quotes that do not fit and to a row with
// another number of columns; the very last may be a remark.
func (t *tableRows) read(s string) bool {
	for i, n := 0, 0; i < len(s); n++ {
		end, columns, ok := t.record(s, i)
		if !ok {
			return false
		}
		row := strings.TrimSuffix(s[i:end], "\r")
		i = end + 1
		switch {
		case strings.TrimSpace(row) == "":
		case columns != t.columns && strings.TrimSpace(s[min(i, len(s)):]) != "":
			return false
		case t.header == "":
			t.header = row
		default:
			t.again += boolInt(row == t.header)
			t.add(row)
		}
	}
	return true
}

// record reads the row that begins at i: where it ends and its columns.
func (t *tableRows) record(s string, i int) (end, columns int, ok bool) {
	code := false
	for begin := i; ; i = end + 1 {
		var odd bool
		if end, odd, ok = field(s, i, t.delim); !ok {
			return end, columns, false
		}
		columns++
		code = code || odd
		blank := i < end && (s[i] == ' ' || s[i] == '\t')
		switch {
		case blank && i == begin:
			t.indented++
		case blank && columns == 2:
			t.spaced++
		}
		if end >= len(s) || s[end] == '\n' {
			break
		}
	}
	if code {
		t.code++
	}
	return end, columns, true
}

// field reads the field that begins at i: where it ends, at a delimiter, a
// newline or the end, and whether it holds what only code has. A field that
// opens a quote has to close it, and nothing may follow but its end.
func field(s string, i int, delim byte) (end int, code, ok bool) {
	if i < len(s) && s[i] == '"' {
		for i++; i < len(s); i++ {
			if s[i] != '"' {
				continue
			}
			if i+1 < len(s) && s[i+1] == '"' {
				i++
				continue
			}
			i++
			rest := strings.TrimPrefix(s[i:min(i+2, len(s))], "\r")
			return i + boolInt(i < len(s) && s[i] == '\r'), false, rest == "" || rest[0] == delim || rest[0] == '\n'
		}
		return i, false, false
	}
	begin := i
	for i < len(s) && s[i] != delim && s[i] != '\n' {
		i++
	}
	return i, !balanced(s[begin:i]) || operators(s[begin:i]), true
}

// balanced says that a text's brackets match.
func balanced(s string) bool {
	if !strings.ContainsAny(s, "()[]{}") {
		return true
	}
	round, square, curly := 0, 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			round++
		case ')':
			round--
		case '[':
			square++
		case ']':
			square--
		case '{':
			curly++
		case '}':
			curly--
		}
	}
	return round == 0 && square == 0 && curly == 0
}

// operators says that a text holds what code has between its words.
func operators(s string) bool {
	if strings.IndexByte(s, '=') < 0 && !strings.HasSuffix(strings.TrimSpace(s), ";") {
		return false
	}
	for _, o := range []string{" = ", ":=", "==", "=>", "!=", "+="} {
		if strings.Contains(s, o) {
			return true
		}
	}
	return strings.HasSuffix(strings.TrimSpace(s), ";")
}

// plausible weighs what speaks against a table: a few odd rows are data, many
// are code or prose with a delimiter a line.
func (t *tableRows) plausible() bool {
	few := t.count / 50
	if t.columns == 2 && t.delim == ',' && 2*t.spaced > t.count {
		return false
	}
	return max(t.indented, t.code, t.again) <= few
}
