package witness

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
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

// stamped is a token that was verified for a checkpoint, with what helps to
// verify it later.
type stamped struct {
	authority Authority
	token     tsa.Token
	crls      [][]byte // DER
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

// Stamp makes one round. If anything but time leaves was added since the last
// stamped checkpoint, or a renewal is due, the newest one is sent to every
// authority; else the last stamped one to those that have not stamped it yet.
// Every token that verifies is kept with its checkpoint. It fails when none was
// got and the checkpoint has not the tokens of a quorum of operators.
//
// What waits for a token is not kept apart: it is what the log has beyond its
// stamps, so it outlives the process, and the newest checkpoint speaks for all
// before it.
func (s *Server) Stamp(ctx context.Context) error {
	s.stampMu.Lock()
	defer s.stampMu.Unlock()
	due, err := s.stampDue()
	if err != nil || len(due.ask) == 0 {
		return err
	}
	got, errs := s.askAll(ctx, due)
	s.stamps.told(due.ask, errs)
	if len(got) == 0 && due.operators < s.o.TimeQuorum {
		return fmt.Errorf("checkpoint %d: %w", due.cp.Size, errors.Join(slices.Collect(maps.Values(errs))...))
	}
	for name, err := range errs {
		s.o.Logger.Warn("an authority gave no good timestamp", "authority", name, "size", due.cp.Size, "err", err)
	}
	if len(got) == 0 {
		return nil
	}
	_, err = submit(ctx, s.seq, func(b *batch) (accepted[int], error) {
		return accepted[int]{len(got)}, b.stamp(due, got, s.o.TimeQuorum)
	})
	return err
}

// dueStamp is what a round has to do.
type dueStamp struct {
	cp   tlog.Checkpoint
	note []byte      // signed, of cp
	ask  []Authority // none: nothing is due

	operators int // distinct, that have stamped it
}

func (s *Server) stampDue() (due dueStamp, err error) {
	err = s.store.View(func(r store.Reader) error {
		state, err := r.State()
		if err != nil {
			return err
		}
		last, err := lastStamped(r, s.origin)
		if err != nil {
			return err
		}
		var have stampRecords
		if last > 0 {
			if have, err = readStamps(r, last); err != nil {
				return err
			}
		}
		due.note, due.ask = state.Checkpoint, s.o.Authorities
		if s.seq.active.Load() <= last && !have.renewable(s.o.Now()) {
			due.ask, due.operators = have.missing(s.o.Authorities), have.operators()
			if last == 0 || len(due.ask) == 0 {
				due.ask = nil
				return nil
			}
			if due.note, err = r.Get(store.Checkpoints, store.Key64(last)); err != nil {
				return err
			}
		}
		due.cp, _, err = tlog.ParseSignedCheckpoint(due.note)
		return err
	})
	return due, err
}

// askAll asks the authorities at once. Tokens and errors come back together:
// one authority's failure is not another's.
func (s *Server) askAll(ctx context.Context, due dueStamp) (got []stamped, failed map[string]error) {
	ctx, cancel := context.WithTimeout(ctx, stampDeadline)
	defer cancel()
	imprint := sha256.Sum256(due.note)
	all := make([]stamped, len(due.ask))
	errs := make([]error, len(due.ask))
	var wg sync.WaitGroup
	for i, a := range due.ask {
		wg.Go(func() { all[i], errs[i] = s.ask(ctx, a, imprint) })
	}
	wg.Wait()
	failed = map[string]error{}
	for i, a := range due.ask {
		if errs[i] == nil {
			got = append(got, all[i])
		} else {
			failed[a.Name] = fmt.Errorf("authority %s: %w", a.Name, errs[i])
		}
	}
	s.suspectClock(failed)
	return got, failed
}

// suspectClock raises the voice when two authorities were refused for their
// time: rather than both, our own clock is wrong.
func (s *Server) suspectClock(failed map[string]error) {
	n := 0
	for _, err := range failed {
		var r *tsa.Refusal
		if errors.As(err, &r) && r.Rule == tsa.RuleClock {
			n++
		}
	}
	if n > 1 {
		s.o.Logger.Error("several authorities state another time than our clock: check this host's clock", "authorities", n)
	}
}

// ask verifies strictly before anything is kept, whoever made the token: first
// as it comes, then once more with the revocation lists of its chain.
func (s *Server) ask(ctx context.Context, a Authority, imprint [32]byte) (stamped, error) {
	got, err := a.Timestamper.Stamp(ctx, imprint)
	if err != nil {
		return stamped{}, err
	}
	o := a.Verify
	o.Digest, o.Now = imprint, s.o.Now()
	token, err := tsa.Verify(got.DER, o)
	if err != nil || a.Revocation == nil {
		return stamped{authority: a, token: token}, err
	}
	crls := a.Revocation(ctx, token.Chain)
	o.CRLs = append(slices.Clone(o.CRLs), crls...)
	token, err = tsa.Verify(got.DER, o)
	return stamped{a, token, crls}, err
}

// stamp writes a time leaf for each token, the tokens and what helps to verify
// them as blobs, and the record of the checkpoint's stamps.
func (b *batch) stamp(due dueStamp, got []stamped, quorum int) error {
	rec, fresh, err := b.logRecord()
	if err != nil {
		return err
	}
	_, signed, err := tlog.ParseSignedCheckpoint(due.note)
	if err != nil {
		return err
	}
	records, err := b.stampsAt(due.cp.Size)
	if err != nil {
		return err
	}
	prev := api.At(rec.Prev)
	if fresh {
		prev = api.Ref{}
	}
	for _, g := range got {
		body, blobs := g.body(due.cp, signed.Signatures[0])
		index, err := b.append(api.Leaf{Type: api.LeafTime, Origin: b.origin, Prev: prev, Body: body.Bytes()})
		if err != nil {
			return err
		}
		for _, blob := range blobs {
			sum := sha256.Sum256(blob)
			b.put(store.Blobs, sum[:], blob)
		}
		prev = api.At(index)
		records = append(records, g.record(body.Token, index))
	}
	if err := b.putStamps(due.cp.Size, records); err != nil {
		return err
	}
	place := stampPlace{Size: due.cp.Size}
	if rec.Stamp != nil {
		place.Full = rec.Stamp.Full
	}
	if records.operators() >= quorum {
		place.Full = due.cp.Size
	}
	rec.Prev, rec.Stamp = prev.Index, &place
	b.keep(rec)
	return nil
}

func (g stamped) body(cp tlog.Checkpoint, line tlog.Signature) (api.TimeBody, [][]byte) {
	body := api.TimeBody{Size: cp.Size, Root: cp.Root, Sig: line, Authority: g.authority.Name, Token: sha256.Sum256(g.token.DER)}
	blobs := [][]byte{g.token.DER}
	seen := map[tlog.Hash]bool{}
	keep := func(kind api.BlobKind, ders [][]byte) {
		for _, der := range ders {
			if hash := tlog.Hash(sha256.Sum256(der)); !seen[hash] {
				seen[hash] = true
				body.Blobs = append(body.Blobs, api.BlobRef{Hash: hash, Kind: kind})
				blobs = append(blobs, der)
			}
		}
	}
	keep(api.BlobCert, g.authority.Certs)
	keep(api.BlobCert, outside(g.token))
	keep(api.BlobCRL, g.crls)
	return body, blobs
}
