package anchor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// Status is how far witnesses follow a chain. Its JSON names are a contract.
type Status struct {
	Origin    string          `json:"origin"`
	Size      uint64          `json:"size"` // receipts in the chain
	Witnesses []WitnessStatus `json:"witnesses"`
}

// WitnessStatus is one witness's part.
type WitnessStatus struct {
	Name       string     `json:"name"`
	URL        string     `json:"url"`
	Size       uint64     `json:"size"`       // receipts below the last head it cosigned
	Lag        uint64     `json:"lag"`        // receipts after it
	LagSeconds float64    `json:"lagSeconds"` // age of the first of them, 0 without
	Cosigned   *time.Time `json:"cosigned,omitempty"`
	Logged     bool       `json:"logged"`            // inclusion in its log was checked
	LogSize    uint64     `json:"logSize,omitempty"` // of its newest verified checkpoint
	LastError  string     `json:"lastError,omitempty"`
	Alarms     []string   `json:"alarms,omitempty"` // evidence of a lying witness, files in the anchor folder
}

// ReadStatus reads the status from the evidence folder, whoever streams.
func ReadStatus(dir string, now time.Time) (Status, error) {
	r, err := chain.OpenReader(dir)
	if err != nil {
		return Status{}, err
	}
	defer r.Close()
	s := Status{Witnesses: []WitnessStatus{}}
	if s.Size, err = r.Size(); err != nil {
		return s, err
	}
	if s.Origin, err = OriginOf(dir); err != nil {
		return s, err
	}
	witnesses, err := Witnesses(dir, s.Origin)
	if err != nil {
		return s, err
	}
	for _, w := range witnesses {
		one, err := w.status(dir, r, s.Size, now)
		if err != nil {
			return s, err
		}
		s.Witnesses = append(s.Witnesses, one)
	}
	return s, nil
}

func (w Witness) status(dir string, r *chain.Reader, size uint64, now time.Time) (WitnessStatus, error) {
	folder := w.folder(dir)
	kept, err := loadState(folder)
	if err != nil {
		return WitnessStatus{}, err
	}
	s := WitnessStatus{Name: w.Name(), URL: w.URL, Size: kept.size.Size, Logged: kept.leaf != nil}
	if size > s.Size {
		s.Lag = size - s.Size
		s.LagSeconds = ageOf(r, s.Size, now)
	}
	if at, ok := cosignedAt(kept.head, w.Cosigner); ok {
		s.Cosigned = &at
	}
	if cp, _, err := tlog.ParseSignedCheckpoint(kept.checkpoint); err == nil {
		s.LogSize = cp.Size
	}
	s.LastError, s.Alarms = faultsIn(folder)
	return s, nil
}

// ageOf is how long ago a receipt was written, by its own clock.
func ageOf(r *chain.Reader, seq uint64, now time.Time) float64 {
	line, err := r.Line(seq)
	if err != nil {
		return 0
	}
	e, err := receipts.ParseLine(line)
	if err != nil {
		return 0
	}
	s, err := receipts.ParseStatement(e.Payload)
	if err != nil {
		return 0
	}
	wall, err := time.Parse(time.RFC3339Nano, s.Text("time", "wall"))
	if err != nil {
		return 0
	}
	return max(now.Sub(wall).Seconds(), 0)
}

func cosignedAt(head []byte, key tlog.Vkey) (time.Time, bool) {
	_, note, err := tlog.ParseSignedCheckpoint(head)
	if err != nil {
		return time.Time{}, false
	}
	sig, err := note.Verify(key)
	if err != nil {
		return time.Time{}, false
	}
	return sig.Time()
}

// alarmPrefix begins the names of files that speak against a witness.
const alarmPrefix = "alarm-"

func faultsIn(folder string) (last string, alarms []string) {
	if b, err := readBounded(filepath.Join(folder, faultName)); err == nil {
		last = strings.TrimSpace(string(b))
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return last, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), alarmPrefix) {
			alarms = append(alarms, e.Name())
		}
	}
	slices.Sort(alarms)
	return last, alarms
}

// keepFault keeps the last error for status; nil removes it. It is a hint and
// not synced.
func keepFault(folder string, fault error) error {
	name := filepath.Join(folder, faultName)
	if fault == nil {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return os.WriteFile(name, []byte(fault.Error()+"\n"), 0o600)
}
