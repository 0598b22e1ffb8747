package bench

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

func thisMachine() Machine {
	return Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.GOMAXPROCS(0), Go: runtime.Version()}
}

const blockSize = 4 << 10 // bytes of one raw flush

// flusher measures the bare cost of making one block durable: a write into
// space that the file already has, then fdatasync. Nothing durable can be
// cheaper on that disk.
type flusher struct {
	file *os.File
	at   int64
	size int64
	sample
}

// newFlusher takes its space in dir, which should lie where the product's files do.
func newFlusher(dir string) (*flusher, error) {
	f, err := os.OpenFile(filepath.Join(dir, "flush"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	r := &flusher{file: f, size: 4 << 20}
	_, err = f.Write(make([]byte, r.size))
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("make room for raw writes: %w", err)
	}
	return r, nil
}

// run flushes blocks one after the other for a while.
func (r *flusher) run(d time.Duration) error {
	b := make([]byte, blockSize)
	rand.Read(b)
	for until := time.Now().Add(d); ; {
		start := time.Now()
		if !start.Before(until) {
			return nil
		}
		if _, err := r.file.WriteAt(b, r.at); err != nil {
			return err
		}
		if err := syncData(r.file); err != nil {
			return err
		}
		r.take(time.Since(start))
		r.at = (r.at + blockSize) % r.size
	}
}

func (r *flusher) close() error { return r.file.Close() }

// signing measures the bare cost of an Ed25519 signature, made and verified:
// on two cores at once, as the aim of a witness is stated.
type signing struct {
	priv ed25519.PrivateKey

	sign, verify sample
	pairs        sample // one of each
}

const signers = 2

func newSigning() (*signing, error) {
	_, priv, err := ed25519.GenerateKey(nil)
	return &signing{priv: priv}, err
}

func (s *signing) run(d time.Duration) error {
	var parts [signers]signing
	var g errgroup.Group
	begin := time.Now()
	for i := range parts {
		parts[i].priv = s.priv
		g.Go(func() error { return parts[i].alone(begin.Add(d)) })
	}
	err := g.Wait()
	for _, p := range parts {
		s.sign.add(p.sign)
		s.verify.add(p.verify)
		s.pairs.add(p.pairs)
	}
	s.pairs.wall += time.Since(begin)
	return err
}

func (s *signing) alone(until time.Time) error {
	msg := make([]byte, 150) // a checkpoint's text is about that long
	pub := s.priv.Public().(ed25519.PublicKey)
	for begin := time.Now(); begin.Before(until); begin = time.Now() {
		msg[0]++
		sig := ed25519.Sign(s.priv, msg)
		signed := time.Now()
		if !ed25519.Verify(pub, msg, sig) {
			return errors.New("this machine does not verify its own signature")
		}
		end := time.Now()
		s.sign.take(signed.Sub(begin))
		s.verify.take(end.Sub(signed))
		s.pairs.took = append(s.pairs.took, end.Sub(begin))
	}
	return nil
}
