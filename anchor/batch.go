package anchor

import (
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
	lineErr   error // of the envelope
	payload   error // of the statement
	signature error // set by verifyAll
	sum       [32]byte
	leaf      tlog.Hash
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

func parseAll(batch []parsed) {
	onAllCores(batch, func(p *parsed) {
		p.sum, p.leaf = sha256.Sum256(p.line.Bytes), tlog.LeafHash(p.line.Bytes)
		if p.envelope, p.lineErr = receipts.ParseLine(p.line.Bytes); p.lineErr != nil {
			return
		}
		p.statement, p.payload = receipts.ParseStatement(p.envelope.Payload)
	})
}

// errNotJudged stands for a signature whose key could not be established.
var errNotJudged = errors.New("no key to judge the signature by")

func verifyAll(batch []parsed, key ed25519.PublicKey) {
	onAllCores(batch, func(p *parsed) {
		switch {
		case p.lineErr != nil:
		case key == nil:
			p.signature = errNotJudged
		default:
			p.signature = p.envelope.Verify(key)
		}
	})
}

// segment returns how many lines of the batch one key signs: up to and with
// the first that brings new keys.
func segment(batch []parsed) int {
	for i := range batch {
		if s := batch[i].statement; s != nil && s.Kind.BringsKeys() {
			return i + 1
		}
	}
	return len(batch)
}
