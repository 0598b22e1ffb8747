package api

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"toolguardian/chain/tlog"
)

// ShardReason is why a log goes on in a new shard.
type ShardReason string

// The reasons to open a shard.
const (
	ShardRollback  ShardReason = "rollback"  // the folder fell behind what was signed
	ShardLostKey   ShardReason = "lost-key"  // a signing key is gone or not the owner's alone
	ShardAlgorithm ShardReason = "algorithm" // other keys are wanted
	ShardDamage    ShardReason = "damage"    // the store cannot be read to its end
	ShardGrowth    ShardReason = "growth"    // the log is large
)

// ShardReasons are all reasons.
func ShardReasons() []ShardReason {
	return []ShardReason{ShardRollback, ShardLostKey, ShardAlgorithm, ShardDamage, ShardGrowth}
}

// ShardBody is the body of a shard leaf, the first of its log: what is known
// of the former shard. It is a hint; nothing follows from it but where to look.
type ShardBody struct {
	Former      string // name of the former shard
	Log         tlog.Vkey
	Cosigner    tlog.Vkey
	Size        uint64 // the highest size of the former shard that was reported
	Reason      ShardReason
	Checkpoints [][]byte // the last known signed checkpoints of the former shard
}

// Bytes is the body as it stands in a leaf.
func (s ShardBody) Bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "former %s\nlog %s\ncosigner %s\nsize %d\nreason %s\n", s.Former, s.Log, s.Cosigner, s.Size, s.Reason)
	for _, c := range s.Checkpoints {
		fmt.Fprintf(&b, "checkpoint %s\n", base64.StdEncoding.EncodeToString(c))
	}
	return b.Bytes()
}

// ParseShardBody reads the body of a shard leaf strictly, and wants every
// checkpoint to be the former shard's, signed by its log key.
func ParseShardBody(b []byte) (ShardBody, error) {
	text, ok := strings.CutSuffix(string(b), "\n")
	if !ok {
		return ShardBody{}, fmt.Errorf("%w: a shard body without a last newline", ErrMalformed)
	}
	f := fields{lines: strings.Split(text, "\n")}
	s := ShardBody{Former: f.next("former")}
	log, cosigner := f.next("log"), f.next("cosigner")
	s.Size, s.Reason = f.uint("size"), ShardReason(f.next("reason"))
	for len(f.lines) > 0 && f.err == nil {
		c, err := base64.StdEncoding.DecodeString(f.next("checkpoint"))
		if err != nil && f.err == nil {
			f.err = fmt.Errorf("%w: checkpoint line: %w", ErrMalformed, err)
		}
		s.Checkpoints = append(s.Checkpoints, c)
	}
	if f.err != nil {
		return ShardBody{}, f.err
	}
	if err := s.parseKeys(log, cosigner); err != nil {
		return ShardBody{}, err
	}
	if !bytes.Equal(s.Bytes(), b) {
		return ShardBody{}, fmt.Errorf("%w: a shard body that is not in canonical form", ErrMalformed)
	}
	return s, s.check()
}

func (s *ShardBody) parseKeys(log, cosigner string) (err error) {
	if s.Log, err = tlog.ParseVkey(log); err != nil {
		return fmt.Errorf("%w: log key: %w", ErrMalformed, err)
	}
	if s.Cosigner, err = tlog.ParseVkey(cosigner); err != nil {
		return fmt.Errorf("%w: cosigner key: %w", ErrMalformed, err)
	}
	return nil
}

func (s ShardBody) check() error {
	if s.Log.Type != tlog.KeyEd25519 || s.Cosigner.Type != tlog.KeyCosignature || s.Log.Name != s.Former {
		return fmt.Errorf("%w: the keys of the former shard are not a log key 01 of its name and a cosigner's 04", ErrMalformed)
	}
	if !slices.Contains(ShardReasons(), s.Reason) {
		return fmt.Errorf("%w: the reason %q is none of %v", ErrMalformed, cut(string(s.Reason)), ShardReasons())
	}
	for _, c := range s.Checkpoints {
		if err := s.checkCheckpoint(c); err != nil {
			return err
		}
	}
	return CheckName(s.Former)
}

func (s ShardBody) checkCheckpoint(b []byte) error {
	cp, note, err := tlog.ParseSignedCheckpoint(b)
	if err != nil {
		return fmt.Errorf("%w: checkpoint of the former shard: %w", ErrMalformed, err)
	}
	if _, err := note.Verify(s.Log); err != nil || cp.Origin != s.Former {
		return fmt.Errorf("%w: a checkpoint that is not signed by the former shard", ErrMalformed)
	}
	if cp.Size > s.Size {
		return fmt.Errorf("%w: a checkpoint of size %d, the highest reported is %d", ErrMalformed, cp.Size, s.Size)
	}
	return nil
}
