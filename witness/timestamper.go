package witness

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/tsa"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// SelfIssued labels the tokens of the built-in authority.
const SelfIssued = "self-issued"

// stampDeadline bounds one authority's answer.
const stampDeadline = 30 * time.Second

// stampRecord is one token kept for a checkpoint, beside the others of its
// size.
type stampRecord struct {
	Authority string    `json:"authority"`
	Token     tlog.Hash `json:"token"` // SHA-256 of the DER, a blob
	Time      time.Time `json:"time"`
	Leaf      uint64    `json:"leaf"`
}

// stamped is a token that was verified for a checkpoint.
type stamped struct {
	authority Authority
	token     tsa.Token
}

// builtIn is the authority that serves when none was configured.
func builtIn(o Options) (Authority, error) {
	a, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: filepath.Join(o.Dir, dirAuthority), Now: o.Now, Logger: o.Logger})
	if err != nil {
		return Authority{}, err
	}
	block, _ := pem.Decode(a.RootPEM())
	if block == nil {
		return Authority{}, errors.New("the built-in authority has no root certificate")
	}
	root, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Authority{}, fmt.Errorf("the built-in authority: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(root)
	return Authority{Name: SelfIssued, Timestamper: a, Verify: tsa.VerifyOptions{Roots: roots}, Certs: [][]byte{root.Raw}}, nil
}

// stampLoop stamps the newest checkpoint at every tick, and at once after the
// first activity of this process.
func (s *Server) stampLoop(ctx context.Context) error {
	tick := time.NewTicker(s.o.StampEvery)
	defer tick.Stop()
	first := s.activity
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-first:
			first = nil
		case <-tick.C:
		}
		if err := s.Stamp(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.Warn("no timestamp", "err", err)
		}
	}
}

// Stamp makes one round: if anything but time leaves was added since the last
// stamped checkpoint, the newest one is sent to every authority, and every
// token that verifies is kept with it. It fails when no token was got.
func (s *Server) Stamp(ctx context.Context) error {
	s.stampMu.Lock()
	defer s.stampMu.Unlock()
	cp, note, err := s.stampDue()
	if err != nil || note == nil {
		return err
	}
	got, err := s.askAll(ctx, sha256.Sum256(note))
	if len(got) == 0 {
		return fmt.Errorf("checkpoint %d: %w", cp.Size, err)
	}
	if err != nil {
		s.o.Logger.Warn("an authority gave no good timestamp", "size", cp.Size, "err", err)
	}
	_, err = submit(ctx, s.seq, func(b *batch) (accepted[int], error) {
		return accepted[int]{len(got)}, b.stamp(cp, note, got)
	})
	return err
}

// stampDue gives the newest checkpoint, or nothing when it differs from the
// last stamped one by time leaves only.
func (s *Server) stampDue() (cp tlog.Checkpoint, note []byte, err error) {
	err = s.store.View(func(r store.Reader) error {
		state, err := r.State()
		if err != nil {
			return err
		}
		last, err := lastStamped(r, s.origin)
		if err != nil || s.seq.active.Load() <= last {
			return err
		}
		note = state.Checkpoint
		cp, _, err = tlog.ParseSignedCheckpoint(note)
		return err
	})
	return cp, note, err
}

func lastStamped(r store.Reader, origin string) (uint64, error) {
	rec, err := readRecord(r, originKey(origin))
	if errors.Is(err, store.ErrNotFound) || err == nil && rec.Stamp == nil {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return rec.Stamp.Size, nil
}

// askAll asks every authority at once. Tokens and errors come back together:
// one authority's failure is not another's.
func (s *Server) askAll(ctx context.Context, imprint [32]byte) ([]stamped, error) {
	ctx, cancel := context.WithTimeout(ctx, stampDeadline)
	defer cancel()
	tokens := make([]tsa.Token, len(s.o.Authorities))
	errs := make([]error, len(s.o.Authorities))
	var wg sync.WaitGroup
	for i, a := range s.o.Authorities {
		wg.Go(func() { tokens[i], errs[i] = a.ask(ctx, imprint, s.o.Now()) })
	}
	wg.Wait()
	var got []stamped
	for i, a := range s.o.Authorities {
		if errs[i] == nil {
			got = append(got, stamped{a, tokens[i]})
		}
	}
	return got, errors.Join(errs...)
}

// ask verifies strictly before anything is kept, whoever made the token.
func (a Authority) ask(ctx context.Context, imprint [32]byte, now time.Time) (tsa.Token, error) {
	got, err := a.Timestamper.Stamp(ctx, imprint)
	if err != nil {
		return got, fmt.Errorf("authority %s: %w", a.Name, err)
	}
	o := a.Verify
	o.Digest, o.Now = imprint, now
	token, err := tsa.Verify(got.DER, o)
	if err != nil {
		return token, fmt.Errorf("authority %s: %w", a.Name, err)
	}
	return token, nil
}

// stamp writes a time leaf for each token, the tokens and certificates as
// blobs, and the record of the checkpoint's stamps.
func (b *batch) stamp(cp tlog.Checkpoint, note []byte, got []stamped) error {
	rec, fresh, err := b.logRecord()
	if err != nil {
		return err
	}
	_, signed, err := tlog.ParseSignedCheckpoint(note)
	if err != nil {
		return err
	}
	prev := api.At(rec.Prev)
	if fresh {
		prev = api.Ref{}
	}
	var records []stampRecord
	for _, g := range got {
		body, blobs := g.body(cp, signed.Signatures[0])
		index, err := b.append(api.Leaf{Type: api.LeafTime, Origin: b.origin, Prev: prev, Body: body.Bytes()})
		if err != nil {
			return err
		}
		for _, blob := range blobs {
			sum := sha256.Sum256(blob)
			b.put(store.Blobs, sum[:], blob)
		}
		prev = api.At(index)
		records = append(records, stampRecord{Authority: body.Authority, Token: body.Token, Time: g.token.Time, Leaf: index})
	}
	value, err := json.Marshal(records)
	if err != nil {
		return err
	}
	b.put(store.Stamps, store.Key64(cp.Size), value)
	rec.Prev, rec.Stamp = prev.Index, &stampPlace{Size: cp.Size}
	b.keep(rec)
	return nil
}

func (g stamped) body(cp tlog.Checkpoint, line tlog.Signature) (api.TimeBody, [][]byte) {
	body := api.TimeBody{Size: cp.Size, Root: cp.Root, Sig: line, Authority: g.authority.Name, Token: sha256.Sum256(g.token.DER)}
	blobs := [][]byte{g.token.DER}
	for _, der := range g.authority.Certs {
		body.Blobs = append(body.Blobs, api.BlobRef{Hash: sha256.Sum256(der), Kind: api.BlobCert})
		blobs = append(blobs, der)
	}
	return body, blobs
}
