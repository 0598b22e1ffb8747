package wire

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
)

// keepBuffer is the largest write buffer kept between messages, in bytes.
const keepBuffer = 1 << 20

// Writer writes one message a line. It is safe for concurrent use: a message
// goes out in one write, so two never mix.
type Writer struct {
	mu  sync.Mutex // held for as long as a write takes; guards w and buf
	w   io.Writer
	buf []byte
	err atomic.Pointer[error] // the first failure; a torn line cannot be mended
}

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes raw and a newline. Line breaks inside raw, which JSON allows
// between tokens only, become spaces. After an error every Write returns it.
func (w *Writer) Write(raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.Err(); err != nil {
		return err
	}
	w.buf = append(append(w.buf[:0], raw...), '\n')
	flatten(w.buf[:len(raw)])
	_, err := w.w.Write(w.buf)
	if err != nil {
		w.err.Store(&err)
	}
	if cap(w.buf) > keepBuffer {
		w.buf = nil
	}
	return err
}

// Err is the first failure of a Write. It does not wait for one under way.
func (w *Writer) Err() error {
	if err := w.err.Load(); err != nil {
		return *err
	}
	return nil
}

func flatten(b []byte) {
	for _, end := range [...]byte{'\n', '\r'} {
		for rest := b; ; {
			i := bytes.IndexByte(rest, end)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}
