package wire

import (
	"bytes"
	"io"
	"sync"
)

// keepBuffer is the largest write buffer kept between messages, in bytes.
const keepBuffer = 1 << 20

// Writer writes one message a line. It is safe for concurrent use: a message
// goes out in one write, so two never mix.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
	err error // the first failure; a torn line cannot be mended
}

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes raw and a newline. Line breaks inside raw, which JSON allows
// between tokens only, become spaces. After an error every Write returns it.
func (w *Writer) Write(raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.buf = append(append(w.buf[:0], raw...), '\n')
	flatten(w.buf[:len(raw)])
	_, w.err = w.w.Write(w.buf)
	if cap(w.buf) > keepBuffer {
		w.buf = nil
	}
	return w.err
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

// Err is the first failure of a Write.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
