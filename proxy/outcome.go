package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/front"
	"toolguardian/proxy/wire"
	"toolguardian/receipts"
)

// end is what came of a call.
type end struct {
	status    string
	received  json.RawMessage // nil: nothing came
	delivered json.RawMessage // nil: nothing is shown
	changes   []string
	around    int // characters of ours beside the text that came; 0: not known
	took      time.Duration
}

// ended reads what came of a call and forms what the client is shown.
func (r *Router) ended(ctx context.Context, t *trip, reply backend.Reply, err error) end {
	e := r.outcome(ctx, t, reply, err)
	if t.repeated {
		e.changes = append(e.changes, sentAgain)
	}
	if whole := front.Complete(t.s.Session, e.delivered); len(whole) != len(e.delivered) {
		e.delivered, e.changes = whole, append(e.changes, addedMembers)
	}
	e.took = r.o.Now().Sub(t.began)
	return e
}

// arrived is the state of a call that was answered, the bytes of that, and what
// they hold, if they are a result.
func arrived(reply backend.Reply) (end, result) {
	if reply.Err != nil {
		e := end{status: receipts.StatusProtocolError, received: reply.Err.Raw}
		if reply.Result != nil {
			e.received = reply.Result
		}
		return e, result{}
	}
	res, err := readResult(reply.Result)
	e := end{status: receipts.StatusOK, received: reply.Result}
	switch {
	case err != nil:
		e.status = receipts.StatusProtocolError
	case res.failed:
		e.status = receipts.StatusToolError
	}
	return e, res
}

// outcome forms what the client is shown.
func (r *Router) outcome(ctx context.Context, t *trip, reply backend.Reply, err error) end {
	if err != nil {
		return r.failure(err)
	}
	e, res := arrived(reply)
	switch {
	case reply.Err != nil:
		e.delivered = protocolError(t, reply.Err).result(r.o.RawResults)
	case e.status == receipts.StatusProtocolError:
		e.delivered = refusal(codeProtocol, t.name()+" answered with a result that is no object: "+clip(string(e.received), 200), nextFailed).result(r.o.RawResults)
	case r.o.RawResults:
		e.delivered = e.received
	default:
		r.success(ctx, t, &e, res)
	}
	return e
}

// success shortens a result and splices what the router says around the
// backend's own blocks. What cannot be spliced passes as it came.
func (r *Router) success(ctx context.Context, t *trip, e *end, res result) {
	next := nextAnswer
	if e.status == receipts.StatusToolError {
		next = nextFailed
	}
	var err error
	raw, changes := r.shape(ctx, t, e.received)
	if changes != nil {
		res, err = readResult(raw)
	}
	if err == nil {
		var more []string
		e.delivered, more, err = res.deliver(t.notices, next)
		e.changes = append(changes, more...)
		e.around = around(t.notices, next, e.changes)
	}
	if err != nil {
		e.delivered, e.changes, e.around = e.received, nil, 0
	}
}

// around counts the characters of the notices and of the next step; 0 where the
// changes tell of anything else.
func around(notices []string, next string, changes []string) (n int) {
	for _, c := range changes {
		if c != addedNext && c != addedNotice {
			return 0
		}
	}
	if len(changes) == 0 {
		return 0
	}
	for _, text := range notices {
		n += utf8.RuneCountInString(text)
	}
	return n + utf8.RuneCountInString(nextPrefix+next)
}

const (
	nextAnswer = "answer the user from this result."
	nextFailed = "the call failed: correct its args and use call_tool again, or tell the user what failed."
	nextUnsure = "do not repeat the call blindly: look whether it took effect, or tell the user that this is not known."
)

// failure is a call without an answer. Only what surely did not reach the
// backend is said not to have run.
func (r *Router) failure(err error) end {
	say := func(status, code, next string) end {
		return end{status: status, delivered: refusal(code, plainCall(err), next).result(r.o.RawResults)}
	}
	switch {
	case errors.Is(err, backend.ErrCancelled):
		return end{status: receipts.StatusCancelled}
	case errors.Is(err, backend.ErrNotSent):
		return say(receipts.StatusProtocolError, codeNotSent, "the tool did not run. Tell the user, or use another server.")
	case errors.Is(err, backend.ErrTimeout):
		return say(receipts.StatusTimeout, codeTimeout, nextUnsure)
	case errors.Is(err, backend.ErrDied):
		return say(receipts.StatusUnknown, codeDied, nextUnsure)
	}
	return say(receipts.StatusUnknown, codeProtocol, nextUnsure)
}

// plainCall is an error of a call on one line.
func plainCall(err error) string {
	return string(bytes.Join(bytes.Fields([]byte(err.Error())), []byte(" ")))
}

func protocolError(t *trip, e *wire.Error) answer {
	text := fmt.Sprintf("%s answered with error %d: %s", t.name(), e.Code, e.Message)
	if e.Data != nil {
		text += "\ndata: " + string(e.Data)
	}
	return refusal(codeProtocol, text, nextFailed)
}

func (t *trip) name() string { return t.tool.Server + "." + t.tool.Name }
