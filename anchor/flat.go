package anchor

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"toolguardian/chain/tlog"
)

// flatHeader is the first line of a flat anchor file.
const flatHeader = "tool-guardian/anchors/1"

// Flat is a parsed anchor file.
type Flat struct {
	Notes []tlog.Note // heads, in the order of the file
	Torn  int         // lines that are no head: torn by a crash, or not ours
}

// FlatLine writes a signed head as one line without "\n": origin, size, root,
// then name and signature of each line of the note, separated by spaces.
func FlatLine(head []byte) ([]byte, error) {
	cp, note, err := tlog.ParseSignedCheckpoint(head)
	if err != nil {
		return nil, fmt.Errorf("anchor line: %w", err)
	}
	b := fmt.Appendf(nil, "%s %d %s", cp.Origin, cp.Size, cp.Root.Base64())
	for _, s := range note.Signatures {
		line := strings.TrimSuffix(strings.TrimPrefix(s.Line(), "— "), "\n")
		b = append(append(b, ' '), line...)
	}
	return b, nil
}

// ParseFlat reads an anchor file. A line that is no head is counted and never
// spoils the others.
func ParseFlat(b []byte) Flat {
	var f Flat
	for line := range bytes.SplitSeq(b, []byte("\n")) {
		if len(line) == 0 || string(line) == flatHeader {
			continue
		}
		if note, ok := parseFlatLine(line); ok {
			f.Notes = append(f.Notes, note)
		} else {
			f.Torn++
		}
	}
	return f
}

// parseFlatLine rebuilds the note and lets the strict parser judge it; a line
// that would be written differently is none of ours.
func parseFlatLine(line []byte) (tlog.Note, bool) {
	w := strings.Split(string(line), " ")
	if len(w) < 5 || len(w)%2 == 0 || strings.ContainsAny(string(line), "\r\t") {
		return tlog.Note{}, false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n\n", w[0], w[1], w[2])
	for i := 3; i < len(w); i += 2 {
		fmt.Fprintf(&b, "— %s %s\n", w[i], w[i+1])
	}
	_, note, err := tlog.ParseSignedCheckpoint([]byte(b.String()))
	if err != nil {
		return tlog.Note{}, false
	}
	again, err := FlatLine(note.Bytes())
	return note, err == nil && bytes.Equal(again, line)
}

// AppendFlat adds a signed head to an anchor file and syncs it. A torn line of
// a former crash is ended first, so that it never fuses with the next. Several
// processes may append to one file.
func AppendFlat(path string, head []byte) error {
	line, err := FlatLine(head)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("anchor file: %w", err)
	}
	err = appendLine(f, line)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("anchor file %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

func appendLine(f *os.File, line []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var b []byte
	if info.Size() == 0 {
		b = append(b, flatHeader+"\n"...)
	} else {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			b = append(b, '\n')
		}
	}
	if _, err := f.Write(append(append(b, line...), '\n')); err != nil {
		return err
	}
	return f.Sync()
}

// decodeBase64 accepts only what encoding would write.
func decodeBase64(b []byte) ([]byte, error) {
	out, err := base64.StdEncoding.Strict().DecodeString(string(b))
	if err == nil && base64.StdEncoding.EncodeToString(out) != string(b) {
		err = base64.CorruptInputError(0)
	}
	return out, err
}
