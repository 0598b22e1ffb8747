package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The refusals of a witness. A caller decides on them with errors.Is and
// errors.As; the text beside them says what to do next.
var (
	// ErrBadRequest: the body is not what the page asks for (400).
	ErrBadRequest = errors.New("bad request")
	// ErrForbidden: no valid signature by the key in force (403).
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound: the resource does not exist, or not yet (404).
	ErrNotFound = errors.New("not found")
	// ErrUnknownOrigin: the witness does not know this origin (404 on a write).
	ErrUnknownOrigin = fmt.Errorf("unknown origin: %w", ErrNotFound)
	// ErrTooLarge: the body is over the limit (413).
	ErrTooLarge = errors.New("body too large")
	// ErrUnprocessable: a proof or a root contradicts what is recorded (422).
	ErrUnprocessable = errors.New("unprocessable")
	// ErrInternal: the witness failed; nothing was promised (500).
	ErrInternal = errors.New("witness failed")
	// ErrUnavailable: the witness cannot write now; try again later (503).
	ErrUnavailable = errors.New("witness unavailable")
)

// ErrConflict says that the old size of a submission is not the latest
// cosigned size of its origin, which is Size (409, C2SP tlog-witness).
type ErrConflict struct{ Size uint64 }

func (e ErrConflict) Error() string {
	return fmt.Sprintf("conflict: the latest cosigned size is %d", e.Size)
}

// ErrRateLimited says that the origin sends too often (429).
type ErrRateLimited struct{ RetryAfter time.Duration }

func (e ErrRateLimited) Error() string {
	return fmt.Sprintf("too many requests: retry after %v", e.RetryAfter)
}

// statuses is the one table between errors and HTTP statuses. The first match
// wins towards a status, the first status wins towards an error.
var statuses = []struct {
	err    error
	status int
}{
	{ErrBadRequest, http.StatusBadRequest},
	{ErrForbidden, http.StatusForbidden},
	{ErrUnknownOrigin, http.StatusNotFound},
	{ErrNotFound, http.StatusNotFound},
	{ErrTooLarge, http.StatusRequestEntityTooLarge},
	{ErrUnprocessable, http.StatusUnprocessableEntity},
	{ErrUnavailable, http.StatusServiceUnavailable},
	{ErrInternal, http.StatusInternalServerError},
}

// ContentTypeSize is the type of a 409 body: the latest size and a newline.
const ContentTypeSize = "text/x.tlog.size"

// Status is the HTTP status that stands for err; 500 for an error that is not
// in the table.
func Status(err error) int {
	if errors.As(err, new(ErrConflict)) {
		return http.StatusConflict
	}
	if errors.As(err, new(ErrRateLimited)) {
		return http.StatusTooManyRequests
	}
	for _, row := range statuses {
		if errors.Is(err, row.err) {
			return row.status
		}
	}
	return http.StatusInternalServerError
}

// ErrorOf reads the error that a response other than 200 to a write stands
// for.
func ErrorOf(resp *http.Response, body []byte) error { return errorOf(resp, body, true) }

// errorOf reads the error that a response other than 200 stands for.
func errorOf(resp *http.Response, body []byte, write bool) error {
	switch resp.StatusCode {
	case http.StatusConflict:
		return conflictOf(resp, body)
	case http.StatusTooManyRequests:
		return ErrRateLimited{RetryAfter: retryAfter(resp)}
	case http.StatusNotFound:
		if !write {
			return withText(ErrNotFound, body)
		}
	}
	for _, row := range statuses {
		if row.status == resp.StatusCode {
			return withText(row.err, body)
		}
	}
	return withText(fmt.Errorf("%w: status %d", ErrInternal, resp.StatusCode), body)
}

func conflictOf(resp *http.Response, body []byte) error {
	size, err := parseSizeLine(body)
	if err != nil || resp.Header.Get("Content-Type") != ContentTypeSize {
		return fmt.Errorf("%w: a conflict without a size line of type %s", ErrInternal, ContentTypeSize)
	}
	return ErrConflict{Size: size}
}

// retryAfter reads delta-seconds (RFC 9110 10.2.3); a second when it is absent.
func retryAfter(resp *http.Response) time.Duration {
	n, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31)
	if err != nil || n == 0 {
		return time.Second
	}
	return time.Duration(n) * time.Second
}

// withText adds what the witness said, cut and made printable: it is another's
// choice of bytes on our terminal.
func withText(err error, body []byte) error {
	const most = 200
	text := strings.TrimSpace(string(body))
	if len(text) > most {
		text = text[:most]
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: the witness says %q", err, text)
}
