package backend

import (
	"context"
	"errors"
	"os"
	"time"
)

// input is a server's stdin. One message is written at a time and always to its
// end, since half a line would spoil every later one; a caller that gives up
// leaves the rest of its message to a goroutine that keeps the turn.
type input struct {
	f    *os.File
	turn chan struct{} // holds one token while somebody writes
	now  attempt       // belongs to who has the turn
}

func newInput(f *os.File) *input {
	in := &input{f: f, turn: make(chan struct{}, 1)}
	in.now.prepare(f)
	return in
}

// write puts line, which ends in a newline, on the pipe. begun says whether any
// byte was, or will be, written: if not, the server never sees the message.
func (in *input) write(ctx context.Context, line []byte) (begun bool, err error) {
	return in.writeBy(ctx, nil, line)
}

// writeBy is write for a call with a clock.
func (in *input) writeBy(ctx context.Context, k *clock, line []byte) (begun bool, err error) {
	select {
	case in.turn <- struct{}{}:
	default:
		limited, stop := k.within(ctx)
		defer stop()
		select {
		case in.turn <- struct{}{}:
		case <-limited.Done():
			return false, context.Cause(limited)
		}
	}
	if ctx.Err() != nil {
		<-in.turn
		return false, context.Cause(ctx)
	}
	n, err := in.now.write(line)
	if err != nil || n == len(line) {
		<-in.turn
		return n > 0, err
	}
	return in.rest(ctx, k, line, n)
}

// rest goes on with a line that found no room for all of it: n bytes are out.
// It has the turn.
func (in *input) rest(ctx context.Context, k *clock, line []byte, n int) (begun bool, err error) {
	ctx, stop := k.within(ctx)
	defer stop()
	more, err := in.writeUntil(ctx, line[n:])
	n += more
	if errors.Is(err, os.ErrDeadlineExceeded) && n > 0 {
		go in.finish(line[n:])
		return true, context.Cause(ctx)
	}
	<-in.turn
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false, context.Cause(ctx)
	}
	return n > 0, err
}

// writeUntil writes until the context ends, which it turns into a deadline of
// the file. The deadline is off again when it returns.
func (in *input) writeUntil(ctx context.Context, line []byte) (int, error) {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		in.f.SetWriteDeadline(time.Unix(1, 0))
		close(interrupted)
	})
	n, err := in.f.Write(line)
	if !stop() {
		<-interrupted
		in.f.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// finish ends with the message, or when the pipe is closed or has no reader.
func (in *input) finish(rest []byte) {
	defer func() { <-in.turn }()
	in.f.Write(rest)
}
