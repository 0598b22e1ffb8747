//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
	"github.com/rogpeppe/go-internal/testscript"
)

// edit rewrites one file, keeping its mode.
func edit(ts *testscript.TestScript, name string, change func([]byte) []byte) {
	file := ts.MkAbs(name)
	info, err := os.Stat(file)
	ts.Check(err)
	b, err := os.ReadFile(file)
	ts.Check(err)
	ts.Check(os.WriteFile(file, change(b), info.Mode().Perm()))
}

// replace FILE LINE OFFSET changes one byte of a line, both counted from 0.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE LINE OFFSET")
	}
	n, at := number(ts, args[1]), number(ts, args[2])
	edit(ts, args[0], func(b []byte) []byte {
		lines := bytes.SplitAfter(b, []byte("\n"))
		was := lines[n][at]
		lines[n][at] = 'A'
		if was == 'A' {
			lines[n][at] = 'B'
		}
		return bytes.Join(lines, nil)
	})
}

// append FILE TEXT adds bytes to the end, without a newline.
func appendBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: append FILE TEXT")
	}
	edit(ts, args[0], func(b []byte) []byte { return append(b, args[1]...) })
}

// cut FILE N takes N bytes off the end.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut FILE N")
	}
	n := number(ts, args[1])
	edit(ts, args[0], func(b []byte) []byte { return b[:len(b)-n] })
}

// lines FILE N… keeps only these lines, counted from 0, in this order.
func keepLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: lines FILE N…")
	}
	edit(ts, args[0], func(b []byte) []byte {
		all := bytes.SplitAfter(b, []byte("\n"))
		var kept []byte
		for _, n := range args[1:] {
			kept = append(kept, all[number(ts, n)]...)
		}
		return kept
	})
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	return n
}

// hold FILE takes a lock as another process would; release FILE lets it go.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold FILE")
	}
	l := flock.New(ts.MkAbs(args[0]))
	if !poll(func() bool {
		held, err := l.TryLock()
		ts.Check(err)
		return held
	}) {
		ts.Fatalf("%s stays locked", args[0])
	}
	worldOf(ts).held[args[0]] = l
	ts.Defer(func() { l.Close() })
}

func release(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: release FILE")
	}
	ts.Check(worldOf(ts).held[args[0]].Unlock())
}

// tree FROM TO copies a folder with its modes, to a place that is new.
func copyTree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tree FROM TO")
	}
	from, to := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	ts.Check(filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		dest := filepath.Join(to, strings.TrimPrefix(name, from))
		if d.IsDir() {
			return os.MkdirAll(dest, 0o700)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(dest, b, 0o600)
	}))
}

// json FILE PATH[=VALUE]… demands that the file's JSON value, or each of its
// lines that is one, has something at the path, and with a value exactly that.
// A path's steps are members or indexes, joined by dots.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: json FILE PATH[=VALUE]…")
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	d.UseNumber()
	values := 0
	for ; d.More(); values++ {
		var v any
		ts.Check(d.Decode(&v))
		for _, want := range args[1:] {
			path, value, exact := strings.Cut(want, "=")
			got, ok := at(v, path)
			if !ok || exact && fmt.Sprint(got) != value {
				ts.Fatalf("%s: value %d has %s = %v, want %s", args[0], values, path, got, want)
			}
		}
	}
	if values == 0 {
		ts.Fatalf("%s holds no JSON value", args[0])
	}
}

// at follows a path into a decoded value.
func at(v any, path string) (any, bool) {
	for step := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			next, ok := in[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// nowhere TEXT PATH… demands that no file below the paths holds the text: as
// it is, in hex, or in base64 at any alignment.
func nowhere(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: nowhere TEXT PATH…")
	}
	forms := disguises(args[0])
	files, found := 0, ""
	for _, root := range args[1:] {
		ts.Check(filepath.WalkDir(ts.MkAbs(root), func(name string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			b, err := os.ReadFile(name)
			files++
			for _, form := range forms {
				if bytes.Contains(b, form) {
					found = name
				}
			}
			return err
		}))
	}
	switch {
	case files == 0:
		ts.Fatalf("no file below %v", args[1:])
	case (found != "") != neg:
		ts.Fatalf("%q: found in %q of %d files", args[0], found, files)
	}
}

// disguises are the forms in which a text may hide in a file. The first and
// last characters of base64 depend on the neighbours and are left out.
func disguises(text string) [][]byte {
	forms := [][]byte{[]byte(text), []byte(hex.EncodeToString([]byte(text)))}
	for pad := range 3 {
		coded := base64.StdEncoding.EncodeToString(append(make([]byte, pad), text...))
		from, to := (pad*8+5)/6, (pad+len(text))*8/6
		forms = append(forms, []byte(coded[from:to]))
	}
	return forms
}
