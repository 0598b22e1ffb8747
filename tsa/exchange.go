package tsa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultRest is how long an authority rests that says 429 or 503 without
	// saying for how long; maxRest is the longest wish that is granted.
	defaultRest = time.Minute
	maxRest     = 24 * time.Hour
)

// refuseRedirect keeps the redirect as the answer: followed, it would turn the
// POST into a GET, and the operator should configure the new place.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// ask makes one exchange under one deadline, from dialling to the last byte.
func (c *Client) ask(ctx context.Context, r Remote, imprint [32]byte) Attempt {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	query := NewRequest(imprint)
	query.Policy = r.Policy
	body, err := query.DER()
	if err != nil {
		return Attempt{Outcome: Stopped, Err: err}
	}
	resp, err := c.post(ctx, r.URL, body)
	if err != nil {
		return Attempt{Outcome: Unreachable, Err: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return c.httpRefusal(resp)
	}
	if got := resp.Header.Get("Content-Type"); !isMedia(got, replyType) {
		return Attempt{Outcome: Refused, Err: fmt.Errorf("content type %s, expected %s", shown([]byte(got)), replyType)}
	}
	if coding := resp.Header.Get("Content-Encoding"); coding != "" {
		return Attempt{Outcome: Refused, Err: fmt.Errorf("content coding %s was not asked for", shown([]byte(coding)))}
	}
	reply, err := io.ReadAll(io.LimitReader(resp.Body, MaxToken+1))
	if err != nil {
		return Attempt{Outcome: Unreachable, Err: fmt.Errorf("read reply: %w", err)}
	}
	if len(reply) > MaxToken {
		err := refuse(RuleSize, "the reply is longer than %d bytes", MaxToken)
		return Attempt{Outcome: Refused, Err: err, Response: reply[:MaxToken]}
	}
	return c.weigh(r, query, reply)
}

// post closes the connection afterwards: some servers close kept ones silently,
// and a POST lost that way would not be repeated.
func (c *Client) post(ctx context.Context, url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", queryType)
	req.Header.Set("Accept", replyType)
	req.Close = true
	return c.http.Do(req)
}

// httpRefusal judges by the status alone; the body is only shown, never parsed,
// whatever it is labelled.
func (c *Client) httpRefusal(resp *http.Response) Attempt {
	if resp.StatusCode/100 == 3 {
		to := shown([]byte(resp.Header.Get("Location")))
		return Attempt{Outcome: Refused, Err: fmt.Errorf("%s: it moved to %s: configure that URL if you trust it", shown([]byte(resp.Status)), to)}
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxText+1)) // what could be read informs
	err := fmt.Errorf("%s: %s", shown([]byte(resp.Status)), shown(text))
	a := Attempt{Outcome: Later, Err: err}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		a.RetryAt = c.retryAt(resp.Header.Get("Retry-After"))
	}
	return a
}

// retryAt reads Retry-After in both forms (RFC 9110 section 10.2.3).
func (c *Client) retryAt(header string) time.Time {
	now := c.now()
	rest := defaultRest
	if at, err := http.ParseTime(header); err == nil {
		rest = at.Sub(now)
	} else if seconds, err := strconv.ParseUint(strings.TrimSpace(header), 10, 32); err == nil {
		rest = time.Duration(seconds) * time.Second
	}
	return now.Add(min(max(rest, 0), maxRest))
}

// clockRefusal is a sound token whose time is far from ours.
type clockRefusal struct {
	*Refusal
	stated time.Time
}

// Unwrap gives the Refusal to errors.As.
func (r *clockRefusal) Unwrap() error { return r.Refusal }

// weigh turns a reply into an outcome.
func (c *Client) weigh(r Remote, query Request, reply []byte) Attempt {
	a := Attempt{Response: reply}
	status, der, err := ParseResponse(reply)
	if err != nil {
		a.Err, a.Outcome = err, replyOutcome(status, err)
		return a
	}
	o := VerifyOptions{
		Imprint: query.Imprint, Nonce: query.Nonce,
		Roots: r.Roots, ExtraCerts: r.ExtraCerts, AllowESSv1: r.AllowESSv1,
		Now: c.now(), MaxSkew: c.skew,
	}
	if r.Policy != "" {
		o.Policies = []string{r.Policy}
	}
	v := judge(der, o)
	v.token.Authority = r.Name
	if off := v.token.Time.Sub(o.Now).Abs(); v.mayOffend() && off > c.skew {
		a.Err = &clockRefusal{refuse(RuleClock, "genTime %s is %s off our clock", v.token.Time.Format(time.RFC3339), off.Round(time.Second)), v.token.Time}
		a.Outcome = Refused
		return a
	}
	switch {
	case v.rest != nil:
		a.Outcome, a.Err = Refused, v.rest
	case v.chain == nil:
		a.Outcome, a.Token = Stamped, v.token
	case v.chain.Rule == RuleRoot:
		a.Outcome, a.Err, a.Token = Unanchored, v.chain, v.token
	default:
		a.Outcome, a.Err = Refused, v.chain
	}
	return a
}

// mayOffend reports a token of which only the time may be wrong.
func (v verdict) mayOffend() bool {
	return v.chain == nil && (v.rest == nil || v.rest.Rule == RuleClock)
}

// replyOutcome tells a refusal to wait for from one to act on, and both from
// bytes that are no answer.
func replyOutcome(status Status, err error) Outcome {
	var refused *Refusal
	switch {
	case !errors.As(err, &refused) || refused.Rule != RuleStatus || status.granted() || status.Code < 0:
		return Refused
	case status.Permanent():
		return Stopped
	}
	return Later
}
