package wire

import "io"

// MaxMessage is the default bound of one message, in bytes.
const MaxMessage = 64 << 20

// LineError is a line that is no message. The connection goes on.
type LineError struct {
	Reason string
	Code   int     // the JSON-RPC code to answer with
	Batch  bool    // the line is a JSON array; Msg.Raw holds it
	Msg    Message // what could be read: the ID often, Raw unless too long
}

func (e *LineError) Error() string { return e.Reason }

// Reader splits a stream into messages.
type Reader struct{ r io.Reader }

// NewReader reads a client: every line that is no message is a *LineError.
func NewReader(r io.Reader, max int) *Reader { return &Reader{r} }

// NewBackendReader reads a backend: lines that are no JSON object are skipped
// and counted.
func NewBackendReader(r io.Reader, max int) *Reader { return &Reader{r} }

// Next returns the next message; a *LineError concerns one line only.
func (r *Reader) Next() (Message, error) { return Message{}, io.EOF }

// Noise counts the lines skipped. It is safe to call from any goroutine.
func (r *Reader) Noise() int { return 0 }

// Writer writes one message a line. It is safe for concurrent use.
type Writer struct{ w io.Writer }

// NewWriter writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w} }

// Write writes raw and a newline.
func (w *Writer) Write(raw []byte) error { return nil }
