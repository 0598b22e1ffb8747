package bench

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"toolguardian/chain"
	"toolguardian/receipts"
)

// sampleSize is how many receipts stand for all. They are alike, and a sample
// fits in memory whole, so that no reading is timed.
const sampleSize = 20_000

// pure is the least that a verifier must do for each receipt: hash the line
// and verify the signature.
type pure struct {
	key   ed25519.PublicKey
	items []pureItem
	bytes int64 // of all lines of the chain, their newlines included

	done int
	wall time.Duration
}

type pureItem struct{ line, signed, sig []byte }

func readSample(dir string, most int) (*pure, error) {
	r, err := chain.OpenReader(dir)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	p := &pure{}
	for l, err := range r.Lines(0) {
		if err != nil {
			return nil, err
		}
		p.bytes += int64(len(l.Bytes)) + 1
		if len(p.items) == most {
			continue
		}
		if err := p.take(l.Bytes); err != nil {
			return nil, fmt.Errorf("receipt %d: %w", l.Seq, err)
		}
	}
	return p, nil
}

func (p *pure) take(line []byte) error {
	e, err := receipts.ParseLine(line)
	if err != nil {
		return err
	}
	if p.key == nil {
		s, err := receipts.ParseStatement(e.Payload)
		if err != nil {
			return err
		}
		p.key = s.ReceiptKey
	}
	p.items = append(p.items, pureItem{slices.Clone(line), e.PAE(), e.Sig})
	return nil
}

var errSample = errors.New("a generated receipt does not verify")

// run goes through the sample once, on all cores.
func (p *pure) run() error {
	cores := runtime.GOMAXPROCS(0)
	var g errgroup.Group
	begin := time.Now()
	for part := range slices.Chunk(p.items, (len(p.items)+cores-1)/cores) {
		g.Go(func() error {
			var sum [sha256.Size]byte
			for _, i := range part {
				sum = sha256.Sum256(i.line)
				if !ed25519.Verify(p.key, i.signed, i.sig) {
					return errSample
				}
			}
			runtime.KeepAlive(sum)
			return nil
		})
	}
	err := g.Wait()
	p.wall += time.Since(begin)
	p.done += len(p.items)
	return err
}

func (p *pure) perSecond() float64 { return round(float64(p.done) / p.wall.Seconds()) }
