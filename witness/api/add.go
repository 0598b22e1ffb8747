package api

import (
	"bytes"
	"fmt"
	"strings"

	"toolguardian/chain/tlog"
)

// MaxBody is the most bytes a request body may have; a longer one is 413.
const MaxBody = 160 << 10

// AddRequest is the body of POST /add-checkpoint (C2SP tlog-witness).
type AddRequest struct {
	Old   uint64
	Proof []tlog.Hash
	Head  []byte // signed checkpoint
}

// Bytes is the body.
func (r AddRequest) Bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "old %d\n", r.Old)
	for _, h := range r.Proof {
		b.WriteString(h.Base64())
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	b.Write(r.Head)
	return b.Bytes()
}

// ParseAddRequest reads the body strictly; the checkpoint is not judged.
func ParseAddRequest(b []byte) (AddRequest, error) {
	head, note, ok := bytes.Cut(b, []byte("\n\n"))
	if !ok {
		return AddRequest{}, fmt.Errorf("%w: no empty line between proof and checkpoint", ErrMalformed)
	}
	lines := strings.Split(string(head), "\n")
	f := fields{lines: lines[:1]}
	r := AddRequest{Old: f.uint("old"), Head: note}
	if f.err != nil {
		return AddRequest{}, f.err
	}
	if len(lines)-1 > MaxProofLines {
		return AddRequest{}, fmt.Errorf("%w: %d proof lines, at most %d", ErrMalformed, len(lines)-1, MaxProofLines)
	}
	for i, line := range lines[1:] {
		h, err := tlog.ParseHashBase64(line)
		if err != nil {
			return AddRequest{}, fmt.Errorf("%w: proof line %d: %w", ErrMalformed, i+1, err)
		}
		r.Proof = append(r.Proof, h)
	}
	return r, nil
}
