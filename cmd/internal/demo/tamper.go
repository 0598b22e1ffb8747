package demo

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// tampering is one way to cheat and the word that names it.
type tampering struct {
	name, says, want string
	edit             func(dir string, lines [][]byte) ([][]byte, error)
}

func (s *story) tamper(ctx context.Context) error {
	for _, t := range []tampering{
		{"edited", "one byte of an old receipt is changed", "ALTERED", editOneByte},
		{"cut", "the newest receipts are deleted", "TRUNCATED", cutTail},
		{"rewritten", "history is rewritten from the third receipt on, and signed again with the real keys", "REWRITTEN", rewrite},
	} {
		copied := s.path("auditor", t.name)
		if err := s.doctor(t, copied); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		s.line("%s:", t.says)
		args := s.verifyArgs(copied)
		s.shell(append(args[:4:4], "--witness-key", "…", "--chain-key", "…"))
		out, code, err := s.quiet(ctx, args...)
		if err != nil {
			return err
		}
		if code != 1 || !strings.Contains(out, t.want) {
			return fmt.Errorf("%s: verify said exit %d, and not %s:\n%s", t.name, code, t.want, out)
		}
		s.indent(verdictOf(out))
	}
	return nil
}

// doctor copies the evidence and applies the edit to the copy.
func (s *story) doctor(t tampering, to string) error {
	if err := copyFolder(to, s.path("agent", "evidence")); err != nil {
		return err
	}
	segments, err := filepath.Glob(filepath.Join(to, "chain", "*.jsonl"))
	if err != nil || len(segments) == 0 {
		return fmt.Errorf("no segment in %s: %w", to, err)
	}
	b, err := os.ReadFile(segments[0])
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))
	if lines, err = t.edit(to, lines); err != nil {
		return err
	}
	// The cheat also drops what would give the edit away on this host.
	if err := os.RemoveAll(filepath.Join(to, "chain", "tiles")); err != nil {
		return err
	}
	return os.WriteFile(segments[0], append(bytes.Join(lines, []byte("\n")), '\n'), 0o600)
}

// copyFolder copies files with their modes, as a backup would.
func copyFolder(to, from string) error {
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
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
	})
}

// editOneByte changes one character inside the signed payload of a receipt.
func editOneByte(_ string, lines [][]byte) ([][]byte, error) {
	line := slices.Clone(lines[len(lines)/2])
	at := len(`{"payload":"`) + 400
	if line[at] == 'A' {
		line[at] = 'B'
	} else {
		line[at] = 'A'
	}
	lines[len(lines)/2] = line
	return lines, nil
}

func cutTail(_ string, lines [][]byte) ([][]byte, error) { return lines[:len(lines)-3], nil }

// rewrite replaces a word in the third receipt, links every later receipt to
// the new bytes and signs them all again: on this host nothing is left that
// contradicts it.
func rewrite(dir string, lines [][]byte) ([][]byte, error) {
	priv, err := tlog.LoadKeyFile(filepath.Join(dir, "keys", "receipt.key"))
	if err != nil {
		return nil, err
	}
	for i := 2; i < len(lines); i++ {
		var was string
		prev := sha256.Sum256(lines[i-1])
		if lines[i], was, err = reseal(lines[i], hex.EncodeToString(prev[:]), priv); err != nil {
			return nil, err
		}
		if i == 2 && was == "" {
			return nil, fmt.Errorf("the third receipt names no version to falsify")
		}
	}
	return lines, nil
}

// reseal signs a receipt again with another prev and another program version.
func reseal(line []byte, prev string, priv ed25519.PrivateKey) (out []byte, was string, err error) {
	e, err := receipts.ParseLine(line)
	if err != nil {
		return nil, "", err
	}
	st, err := receipts.ParseStatement(e.Payload)
	if err != nil {
		return nil, "", err
	}
	was = st.Text("version")
	payload := bytes.ReplaceAll(e.Payload, []byte(hex.EncodeToString(st.Prev[:])), []byte(prev))
	payload = bytes.Replace(payload, []byte(`"version":"`+was+`"`), []byte(`"version":"9.9.9"`), 1)
	forged := receipts.Envelope{Payload: payload, KeyID: e.KeyID}
	forged.Sig = ed25519.Sign(priv, forged.PAE())
	return forged.Bytes(), was, nil
}

// verdictOf is the report down to its reasons: what stands before what was checked.
func verdictOf(report string) string {
	top, _, _ := strings.Cut(report, "\nWhat was checked:")
	return top
}
