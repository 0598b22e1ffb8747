package anchor

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"iter"
	"runtime"
	"sync"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// batchSize lines are in memory at a time, twice: one batch is read while the
// other is judged.
const batchSize = 1024

// parsed is one line and everything about it that does not depend on others.
type parsed struct {
	line      chain.Line
	envelope  receipts.Envelope
	statement *receipts.Statement
	lineErr   error             // of the envelope
	payload   error             // of the statement
	by        ed25519.PublicKey // the key that signature was judged by
	signature error
	sum       [32]byte
	leaf      tlog.Hash
	session   string // what the story asks of a statement
	call      string
}

// readAhead reads batches in a goroutine of its own, which ends when the lines
// do or stop is closed.
func readAhead(lines iter.Seq2[chain.Line, error], stop <-chan struct{}) (<-chan []parsed, func() error) {
	out := make(chan []parsed, 1)
	var failed error
	go func() {
		defer close(out)
		batch := make([]parsed, 0, batchSize)
		for line, err := range lines {
			if err != nil {
				failed = err
				break
			}
			line.Bytes = append([]byte(nil), line.Bytes...)
			if batch = append(batch, parsed{line: line}); len(batch) < batchSize {
				continue
			}
			if !send(out, batch, stop) {
				return
			}
			batch = make([]parsed, 0, batchSize)
		}
		send(out, batch, stop)
	}()
	// failed is read only after out is closed.
	return out, func() error { return failed }
}

func send(out chan<- []parsed, batch []parsed, stop <-chan struct{}) bool {
	select {
	case out <- batch:
		return true
	case <-stop:
		return false
	}
}

// onAllCores runs work over the batch in equal parts.
func onAllCores(batch []parsed, work func(*parsed)) {
	parts := min(runtime.GOMAXPROCS(0), len(batch))
	if len(batch) == 1 {
		work(&batch[0])
		return
	}
	var group sync.WaitGroup
	for p := range parts {
		part := batch[p*len(batch)/parts : (p+1)*len(batch)/parts]
		group.Go(func() {
			for i := range part {
				work(&part[i])
			}
		})
	}
	group.Wait()
}

// judgeAhead parses batches and verifies their signatures while the judge is at
// the batch before. The key it takes is the one that the last genesis or
// rotation brings, if that line holds; where the judge finds that it does not,
// the judge verifies again.
func judgeAhead(in <-chan []parsed, stop <-chan struct{}) <-chan []parsed {
	out := make(chan []parsed, 1)
	go func() {
		defer close(out)
		var key ed25519.PublicKey
		for batch := range in {
			onAllCores(batch, (*parsed).parse)
			for i := range batch {
				p := &batch[i]
				s := p.statement
				if brings := s != nil && s.Kind.BringsKeys(); key == nil && brings {
					key = s.ReceiptKey
				}
				if p.by = key; s != nil && s.Kind.BringsKeys() {
					key = s.ReceiptKey
				}
			}
			onAllCores(batch, (*parsed).verify)
			if !send(out, batch, stop) {
				return
			}
		}
	}()
	return out
}

func (p *parsed) parse() {
	p.sum, p.leaf = sha256.Sum256(p.line.Bytes), tlog.LeafHash(p.line.Bytes)
	if p.envelope, p.lineErr = receipts.ParseLine(p.line.Bytes); p.lineErr != nil {
		return
	}
	s, err := receipts.ParseStatement(p.envelope.Payload)
	if p.statement, p.payload = s, err; err != nil {
		return
	}
	p.session = s.Session()
	if s.Kind == receipts.KindDecision || s.Kind == receipts.KindOutcome {
		p.call = s.CallID()
	}
}

// errNotJudged stands for a signature whose key could not be established.
var errNotJudged = errors.New("no key to judge the signature by")

// verify judges the signature by p.by.
func (p *parsed) verify() {
	switch {
	case p.lineErr != nil:
	case p.by == nil:
		p.signature = errNotJudged
	default:
		p.signature = p.envelope.Verify(p.by)
	}
}

// verifiedBy judges the signature by the key in force, unless that was done.
func (p *parsed) verifiedBy(key ed25519.PublicKey) {
	if !bytes.Equal(p.by, key) {
		p.by = key
		p.verify()
	}
}
