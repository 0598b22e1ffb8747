package anchor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

const (
	witnessHeader = "tool-guardian/witness/1"
	stateHeader   = "tool-guardian/anchored/1"

	folderName  = "anchor"  // inside the evidence folder
	witnessName = "witness" // pins and address of one witness
	stateName   = "state"   // what it accepted
	faultName   = "fault"   // the last error, gone after a success
	maxState    = 1 << 20
)

// Witness is one that a chain is enrolled at, with the keys pinned then.
type Witness struct {
	Origin   string // of the chain
	URL      string
	Log      *tlog.Vkey // nil: cosigns and keeps no log of heads
	Cosigner tlog.Vkey
}

// Name is the log's name, or the cosigner's where there is no log.
func (w Witness) Name() string {
	if w.Log != nil {
		return w.Log.Name
	}
	return w.Cosigner.Name
}

func (w Witness) logText() string {
	if w.Log == nil {
		return "none"
	}
	return w.Log.String()
}

// folder is where the witness's state lies: named by chain and keys, so that
// neither a successor chain nor a rekeyed witness meets another's state.
func (w Witness) folder(dir string) string {
	sum := sha256.Sum256([]byte(w.Origin + "\n" + w.logText() + "\n" + w.Cosigner.String() + "\n"))
	return filepath.Join(dir, folderName, hex.EncodeToString(sum[:16]))
}

func (w Witness) bytes() []byte {
	return fmt.Appendf(nil, "%s\norigin %s\nurl %s\nlog %s\ncosigner %s\n", witnessHeader, w.Origin, w.URL, w.logText(), w.Cosigner)
}

func parseWitness(b []byte) (Witness, error) {
	bad := func(what string) (Witness, error) {
		return Witness{}, fmt.Errorf("witness file: %s: enroll again", what)
	}
	lines := strings.Split(string(b), "\n")
	if lines[0] != witnessHeader {
		return bad(fmt.Sprintf("first line %.60q, this program reads %s", lines[0], witnessHeader))
	}
	if len(lines) != 6 || lines[5] != "" {
		return bad("want five lines")
	}
	var v [4]string
	for i, name := range []string{"origin ", "url ", "log ", "cosigner "} {
		var ok bool
		if v[i], ok = strings.CutPrefix(lines[i+1], name); !ok {
			return bad("want a line " + name)
		}
	}
	w := Witness{Origin: v[0], URL: v[1]}
	if v[2] != "none" {
		log, err := tlog.ParseVkey(v[2])
		if err != nil || log.Type != tlog.KeyEd25519 {
			return bad("log key")
		}
		w.Log = &log
	}
	var err error
	if w.Cosigner, err = tlog.ParseVkey(v[3]); err != nil || w.Cosigner.Type != tlog.KeyCosignature {
		return bad("cosigner key")
	}
	return w, nil
}

// save makes the witness durable.
func (w Witness) save(dir string) error {
	folder := w.folder(dir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("keep witness: %w", err)
	}
	if err := replaceFile(filepath.Join(folder, witnessName), w.bytes()); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Join(dir, folderName)), syncDir(dir))
}

// Witnesses lists the witnesses that the chain of that origin is enrolled at;
// with an empty origin, those of every chain. Those that
// can be read come back with the error of those that cannot.
func Witnesses(dir, origin string) ([]Witness, error) {
	entries, err := os.ReadDir(filepath.Join(dir, folderName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list witnesses: %w", err)
	}
	var all []Witness
	var bad error
	for _, e := range entries {
		b, err := readBounded(filepath.Join(dir, folderName, e.Name(), witnessName))
		if err != nil {
			continue // not a witness's folder, or one whose enrolment was cut off
		}
		w, err := parseWitness(b)
		if err != nil {
			bad = errors.Join(bad, fmt.Errorf("%s: %w", e.Name(), err))
			continue
		}
		if origin == "" || w.Origin == origin {
			all = append(all, w)
		}
	}
	return all, bad
}

func readBounded(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxState {
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read", name, info.Size(), maxState)
	}
	return os.ReadFile(name)
}

// state is what one witness accepted, checked before it is kept.
type state struct {
	head       []byte          // our note with its cosignature
	size       tlog.Checkpoint // parsed from head
	leafBytes  []byte          // nil while inclusion was not shown
	leaf       []byte          // tlog-proof of it
	checkpoint []byte          // newest verified checkpoint of the log
}

func (s state) bytes() []byte {
	sections := []tlog.Section{{Name: "head", Data: s.head}}
	for _, more := range []tlog.Section{{Name: "leaf-bytes", Data: s.leafBytes}, {Name: "leaf", Data: s.leaf}, {Name: "checkpoint", Data: s.checkpoint}} {
		if more.Data != nil {
			sections = append(sections, more)
		}
	}
	return tlog.FormatSections(stateHeader, sections)
}

func parseState(b []byte) (state, error) {
	var s state
	all, err := tlog.ParseSections(stateHeader, b)
	if err != nil {
		return s, err
	}
	for _, section := range all {
		switch section.Name {
		case "head":
			s.head = section.Data
		case "leaf-bytes":
			s.leafBytes = section.Data
		case "leaf":
			s.leaf = section.Data
		case "checkpoint":
			s.checkpoint = section.Data
		}
	}
	if s.size, _, err = tlog.ParseSignedCheckpoint(s.head); err != nil {
		return s, err
	}
	if !bytes.Equal(s.bytes(), b) {
		return s, errors.New("not in canonical form")
	}
	return s, nil
}

// loadState reads what a witness accepted; the zero state before it did.
func loadState(folder string) (state, error) {
	b, err := readBounded(filepath.Join(folder, stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, fmt.Errorf("anchor state: %w", err)
	}
	s, err := parseState(b)
	if err != nil {
		return state{}, fmt.Errorf("anchor state %s: %w", folder, err)
	}
	return s, nil
}

// WitnessedByAll is the smallest size that the witnesses of the chain in the
// evidence folder dir cosigned: below it lines may be pruned. Without a witness
// it is 0.
func WitnessedByAll(dir string) (uint64, error) {
	origin, err := OriginOf(dir)
	if err != nil {
		return 0, err
	}
	witnesses, err := Witnesses(dir, origin)
	if err != nil || len(witnesses) == 0 {
		return 0, err
	}
	size := uint64(math.MaxUint64)
	for _, w := range witnesses {
		s, err := loadState(w.folder(dir))
		if err != nil {
			return 0, err
		}
		size = min(size, s.size.Size)
	}
	return size, nil
}

// KeptSize is the size of KeptHead.
func KeptSize(dir string) (uint64, error) {
	size, _, err := KeptHead(dir)
	return size, err
}

// KeptHead is the largest head that any witness accepted of the chain in the
// evidence folder dir, with its cosignature; size 0 for none. A chain shorter
// than that was rolled back. Where the chain's first line cannot be read, every
// chain's heads count.
func KeptHead(dir string) (size uint64, note []byte, err error) {
	origin, err := OriginOf(dir)
	unreadable := errors.Is(err, chain.ErrNoChain) || errors.Is(err, chain.ErrNotFound) ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, receipts.ErrMalformed)
	if err != nil && !unreadable {
		return 0, nil, err
	}
	witnesses, err := Witnesses(dir, origin)
	if err != nil {
		return 0, nil, err
	}
	for _, w := range witnesses {
		s, err := loadState(w.folder(dir))
		if err != nil {
			return 0, nil, err
		}
		if s.size.Size > size {
			size, note = s.size.Size, s.head
		}
	}
	return size, note, nil
}

// OriginOf reads the origin of the chain in the evidence folder dir from its
// first line, without judging it.
func OriginOf(dir string) (string, error) {
	r, err := chain.OpenReader(dir)
	if err != nil {
		return "", err
	}
	defer r.Close()
	line, err := r.Line(0)
	if err != nil {
		return "", err
	}
	e, err := receipts.ParseLine(line)
	if err != nil {
		return "", err
	}
	s, err := receipts.ParseStatement(e.Payload)
	if err != nil {
		return "", err
	}
	return s.Origin, nil
}
