package chain

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"toolguardian/receipts"
)

// Options of a chain. Open copies and checks them.
type Options struct {
	// Dir is the evidence folder; it is made with mode 0700. Required.
	Dir string
	// Label begins the origin of a chain that Open creates: at most 100 bytes
	// of a-z 0-9 . -, default "agents.invalid". An existing chain keeps its own.
	Label string
	// Version of the product, told in receipts that the chain writes itself.
	Version string
	// Capture told in those receipts, default receipts.CaptureProxy.
	Capture string
	// Now reads the wall clock, default time.Now.
	Now func() time.Time
	// FS is where the files are, default the operating system's.
	FS FS
	// LockTimeout bounds the wait for other writers, default 2 s.
	LockTimeout time.Duration
	// SegmentSize in bytes is where a segment is closed, default 64 MiB.
	SegmentSize int64
	// Logger, default none.
	Logger *slog.Logger
	// SegmentAge is where a segment is closed however short it is, by the wall
	// time of its first line; default 7 days.
	SegmentAge time.Duration
	// KeptHeads returns the largest head any witness accepted of the chain in
	// Dir: its size, and the note that a successor shows, nil if it is not kept.
	// A chain shorter than that is closed and a successor opens. Default: none
	// known.
	KeptHeads func() (size uint64, note []byte, err error)
}

const (
	defaultLabel       = "agents.invalid"
	defaultLockTimeout = 2 * time.Second
	defaultSegmentSize = 64 << 20
	defaultSegmentAge  = 7 * 24 * time.Hour
	maxLabel           = 100
)

// checked returns o with its defaults filled in.
func (o Options) checked() (Options, error) {
	if o.Dir == "" {
		return o, errors.New("chain options: Dir is empty: name the evidence folder")
	}
	if o.Label == "" {
		o.Label = defaultLabel
	}
	if err := checkLabel(o.Label); err != nil {
		return o, err
	}
	if o.LockTimeout < 0 || o.SegmentSize < 0 || o.SegmentAge < 0 {
		return o, errors.New("chain options: LockTimeout, SegmentSize and SegmentAge cannot be negative")
	}
	o.defaults()
	return o, nil
}

func (o *Options) defaults() {
	if o.Capture == "" {
		o.Capture = receipts.CaptureProxy
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.FS == nil {
		o.FS = OS()
	}
	if o.LockTimeout == 0 {
		o.LockTimeout = defaultLockTimeout
	}
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegmentSize
	}
	if o.SegmentAge == 0 {
		o.SegmentAge = defaultSegmentAge
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.KeptHeads == nil {
		o.KeptHeads = noneKept
	}
}

func checkLabel(s string) error {
	if len(s) > maxLabel {
		return fmt.Errorf("label of %d bytes: at most %d", len(s), maxLabel)
	}
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' {
			return fmt.Errorf("label %q: only a-z, 0-9, '.' and '-'", s)
		}
	}
	return nil
}
