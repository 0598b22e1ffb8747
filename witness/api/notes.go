package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"toolguardian/chain/tlog"
)

// KeyAct is what a key note does.
type KeyAct string

// The acts of a key note. What may follow what is for KeyHistory to say.
const (
	KeyEnrol  KeyAct = "enrol"
	KeyRotate KeyAct = "rotate"
	KeyRevoke KeyAct = "revoke"
)

// KeyNote is the text of a key note, the body of a key leaf.
type KeyNote struct {
	Act      KeyAct
	Origin   string
	FromSize uint64
	Old, New *tlog.Vkey // nil: none
	Since    Ref        // revoke only
}

// NewEnrol is the note that puts an origin's first key in force.
func NewEnrol(key tlog.Vkey) KeyNote {
	return KeyNote{Act: KeyEnrol, Origin: key.Name, New: &key}
}

// Text is the note text, to be signed.
func (k KeyNote) Text() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tool-guardian/key/v1\n%s\n%s\nfrom-size %d\nold %s\nnew %s\n",
		k.Act, k.Origin, k.FromSize, vkeyText(k.Old), vkeyText(k.New))
	if k.Since.Present {
		fmt.Fprintf(&b, "since %s\n", k.Since)
	}
	return b.Bytes()
}

// Sign is the note with one signature by each signer.
func (k KeyNote) Sign(signers ...*tlog.Signer) ([]byte, error) {
	return signNote(k.Text(), signers)
}

// ParseKeyNote reads a key note strictly; it verifies no signature (see
// KeyNote.SignedBy).
func ParseKeyNote(b []byte) (KeyNote, tlog.Note, error) {
	note, lines, err := parseNoteOf("key", b)
	if err != nil {
		return KeyNote{}, note, err
	}
	if len(lines) < 5 {
		return KeyNote{}, note, fmt.Errorf("%w: a key note of %d lines", ErrMalformed, len(lines))
	}
	k := KeyNote{Act: KeyAct(lines[0]), Origin: lines[1]}
	if err := k.parseLines(lines[2:]); err != nil {
		return KeyNote{}, note, err
	}
	if err := k.check(); err != nil {
		return KeyNote{}, note, err
	}
	return k, note, sameText(k.Text(), note.Text)
}

func (k *KeyNote) parseLines(lines []string) (err error) {
	f := fields{lines: lines}
	k.FromSize = f.uint("from-size")
	before, after := f.next("old"), f.next("new")
	if len(f.lines) > 0 {
		k.Since = At(f.uint("since"))
	}
	if f.err != nil {
		return f.err
	}
	if k.Old, err = parseVkeyText(before); err != nil {
		return err
	}
	k.New, err = parseVkeyText(after)
	return err
}

// check states which members each act has.
func (k KeyNote) check() error {
	wantOld, wantNew, wantSince := k.Act != KeyEnrol, k.Act != KeyRevoke, k.Act == KeyRevoke
	switch {
	case k.Act != KeyEnrol && k.Act != KeyRotate && k.Act != KeyRevoke:
		return fmt.Errorf("%w: the act %q is not enrol, rotate or revoke", ErrMalformed, cut(string(k.Act)))
	case (k.Old != nil) != wantOld || (k.New != nil) != wantNew || k.Since.Present != wantSince:
		return fmt.Errorf("%w: %s with the wrong of old, new and since", ErrMalformed, k.Act)
	case k.Act == KeyEnrol && k.FromSize != 0:
		return fmt.Errorf("%w: an enrol from size %d, want 0", ErrMalformed, k.FromSize)
	}
	for _, v := range []*tlog.Vkey{k.Old, k.New} {
		if v != nil && (v.Type != tlog.KeyEd25519 || v.Name != k.Origin) {
			return fmt.Errorf("%w: a head key must be of type 01 and named %q", ErrMalformed, cut(k.Origin))
		}
	}
	return CheckName(k.Origin)
}

// SignedBy verifies the signatures that the act needs: enrol by the new key, a
// rotate by old and new, or, as an operator's act, each by the log key alone.
// Whose act it is comes back; ErrForbidden when neither holds.
func (k KeyNote) SignedBy(note tlog.Note, logKey tlog.Vkey) (operator bool, err error) {
	own := k.signedByOwn(note)
	if own == nil {
		return false, nil
	}
	if _, err := note.Verify(logKey); err == nil {
		return true, nil
	}
	return false, fmt.Errorf("%w: a key note signed neither by its own keys nor by the log: %w", ErrForbidden, own)
}

func (k KeyNote) signedByOwn(note tlog.Note) error {
	if k.Act == KeyRevoke {
		return errors.New("a revoke is an operator's act")
	}
	for _, v := range []*tlog.Vkey{k.Old, k.New} {
		if v == nil {
			continue
		}
		if _, err := note.Verify(*v); err != nil {
			return err
		}
	}
	return nil
}

// EventState is the state of a chain as its owner reports it.
type EventState string

// The states of a chain.
const (
	StateOpen      EventState = "open"
	StateClosed    EventState = "closed"
	StateSuspended EventState = "suspended"
)

// Event is the text of an event note, the body of an event leaf.
type Event struct {
	Origin    string
	Log       string // name of the log, of the shard
	Size      uint64
	State     EventState
	Heartbeat uint64 // seconds
	After     uint64 // this origin's newest leaf known to the sender
}

// Text is the note text, to be signed by the head key.
func (e Event) Text() []byte {
	return fmt.Appendf(nil, "tool-guardian/event/v1\n%s\nlog %s\nsize %d\nstate %s\nheartbeat %d\nafter %d\n",
		e.Origin, e.Log, e.Size, e.State, e.Heartbeat, e.After)
}

// Sign is the note with one signature by the head key.
func (e Event) Sign(s *tlog.Signer) ([]byte, error) {
	return signNote(e.Text(), []*tlog.Signer{s})
}

// ParseEvent reads an event note strictly; it verifies no signature.
func ParseEvent(b []byte) (Event, tlog.Note, error) {
	note, lines, err := parseNoteOf("event", b)
	if err != nil {
		return Event{}, note, err
	}
	if len(lines) < 1 {
		return Event{}, note, fmt.Errorf("%w: an event note without lines", ErrMalformed)
	}
	f := fields{lines: lines[1:]}
	e := Event{Origin: lines[0], Log: f.next("log"), Size: f.uint("size"), State: EventState(f.next("state")),
		Heartbeat: f.uint("heartbeat"), After: f.uint("after")}
	switch {
	case f.err != nil:
		return Event{}, note, f.err
	case e.State != StateOpen && e.State != StateClosed && e.State != StateSuspended:
		return Event{}, note, fmt.Errorf("%w: the state %q is not open, closed or suspended", ErrMalformed, cut(string(e.State)))
	}
	if err := errors.Join(CheckName(e.Origin), CheckName(e.Log)); err != nil {
		return Event{}, note, err
	}
	return e, note, sameText(e.Text(), note.Text)
}

// parseNoteOf opens a note and gives its text lines after the domain line.
func parseNoteOf(kind string, b []byte) (tlog.Note, []string, error) {
	note, err := tlog.ParseNote(b)
	if err != nil {
		return note, nil, fmt.Errorf("%w: %s note: %w", ErrMalformed, kind, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(note.Text), "\n"), "\n")
	typ, err := parseDomain(lines[0])
	if err != nil {
		return note, nil, err
	}
	if typ != kind {
		return note, nil, fmt.Errorf("%w: a %s note where a %s note is asked for", ErrMalformed, typ, kind)
	}
	return note, lines[1:], nil
}

func sameText(again, text []byte) error {
	if !bytes.Equal(again, text) {
		return fmt.Errorf("%w: a note text that is not in canonical form", ErrMalformed)
	}
	return nil
}

func signNote(text []byte, signers []*tlog.Signer) ([]byte, error) {
	n := tlog.Note{Text: text}
	for _, s := range signers {
		sig, err := s.Sign(text)
		if err != nil {
			return nil, fmt.Errorf("sign note: %w", err)
		}
		n.Signatures = append(n.Signatures, sig)
	}
	return n.Bytes(), nil
}

func vkeyText(v *tlog.Vkey) string {
	if v == nil {
		return "none"
	}
	return v.String()
}

func parseVkeyText(s string) (*tlog.Vkey, error) {
	if s == "none" {
		return nil, nil
	}
	v, err := tlog.ParseVkey(s)
	if err != nil {
		return nil, fmt.Errorf("%w: key: %w", ErrMalformed, err)
	}
	return &v, nil
}

var originForm = regexp.MustCompile(`^[a-z0-9.-]{1,100}/c/[0-9a-f]{32}$`)

// IsChainOrigin says whether s has the form of a chain's origin,
// `<label>/c/<32 hex>`.
func IsChainOrigin(s string) bool { return originForm.MatchString(s) }

// CheckFirstKey refuses a first head key that its origin does not name: the
// hex of an origin is the first half of SHA-256 of the raw key.
func CheckFirstKey(key tlog.Vkey) error {
	sum := sha256.Sum256(key.Key)
	if key.Type != tlog.KeyEd25519 || !IsChainOrigin(key.Name) {
		return fmt.Errorf("%w: %q is not the type-01 key of a chain, named <label>/c/<32 hex>", ErrMalformed, cut(key.Name))
	}
	if !strings.HasSuffix(key.Name, "/c/"+hex.EncodeToString(sum[:16])) {
		return fmt.Errorf("%w: the origin %s is not named after this key", ErrMalformed, key.Name)
	}
	return nil
}
