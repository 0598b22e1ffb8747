package front

import (
	"errors"
	"sync"

	"toolguardian/proxy/wire"
)

// maxBatch is how many messages one batch may hold.
const maxBatch = 1000

// batch gathers the replies of one JSON-RPC batch (JSON-RPC 2.0, section 6).
type batch struct {
	mu      sync.Mutex
	waiting int // elements not accounted for
	replies []byte
	send    func([]byte)
}

// batch runs the elements concurrently and sends one array when the last is
// answered; nothing if none is.
func (c *conn) batch(raw []byte) {
	elements, err := wire.Elements(raw)
	if err != nil || len(elements) == 0 || len(elements) > maxBatch {
		c.send(wire.ReplyError(wire.ID{}, invalidRequest("a batch must hold 1 to %d messages", maxBatch)))
		return
	}
	b := &batch{waiting: len(elements), send: c.send}
	for _, element := range elements {
		m, err := wire.Parse(element)
		var bad *wire.LineError
		if errors.As(err, &bad) {
			b.reply(refusal(bad))
			continue
		}
		c.take(m, b.reply)
	}
}

func (b *batch) reply(raw []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting--
	if raw != nil {
		mark := byte(',')
		if len(b.replies) == 0 {
			mark = '['
		}
		b.replies = append(append(b.replies, mark), raw...)
	}
	if b.waiting == 0 && len(b.replies) > 0 {
		b.send(append(b.replies, ']'))
	}
}
