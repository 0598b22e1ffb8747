package receipts

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Receipt is a receipt without its place in a chain: no seq, prev or
// signature. The constructors fill it; Seal gives it its place.
type Receipt struct {
	Kind        Kind
	ID          string // UUIDv7
	Time        Time
	Session     string
	Capture     string // CaptureProxy, CaptureHook or CaptureCLI
	Version     string
	NotBefore   *NotBefore
	Client      *Client
	Traceparent string
	Fields      []Committed
	Cut         map[string]int // member path → original length in bytes

	own []byte // the kind's own members, encoded, each followed by a comma
	err error  // the first fault of construction, returned by Seal
}

// Time is a reading of both clocks.
type Time struct {
	Wall time.Time     // as read, never corrected
	Mono time.Duration // since the session opened
	Back bool          // the wall clock went back since the receipt before
}

// NotBefore names the newest verified timestamp token: the receipt was made
// after that token's time.
type NotBefore struct {
	Token      [32]byte // SHA-256 of the TimeStampToken DER
	Checkpoint [32]byte // SHA-256 of the note it stamps
}

// Client is what the MCP client said of itself.
type Client struct{ Name, Version string }

// Call names one tool call; decision and outcome pair by ID.
type Call struct {
	ID, Server, Tool string
	RPC              json.RawMessage // the JSON-RPC id, as sent by the client
}

// Common is what every receipt of a session shares.
type Common struct {
	Session     string
	Client      *Client
	Traceparent string
	Capture     string
	Version     string
	Time        Time
	NotBefore   *NotBefore
}

// Answered says who answered a question about a call, and how much was shown.
type Answered struct{ By, Shown string }

// Decision is what was decided on a call, before it was forwarded.
type Decision struct {
	Call     Call
	Effect   string // allow, deny or ask
	Rule     string
	Policy   [32]byte // digest of the policy in force
	Mode     string   // ModeEnforced or ModeAdvised
	Answered *Answered
}

// Outcome is how a call ended.
type Outcome struct {
	Call     Call
	Status   string
	Duration time.Duration
	Changes  []string // what differs between received and delivered
}

// Gap is a stretch without receipts: its bounds, or how many calls it holds.
type Gap struct {
	From, To time.Time
	Count    int64
	Reason   string
}

// Erased names one committed field whose salt is gone.
type Erased struct {
	Seq   uint64
	Field string
}

// Old is the last known state of the chain a successor follows.
type Old struct {
	Origin string
	Size   uint64
	Root   [32]byte
}

// maxChanges and maxChangesBytes (encoded) keep an outcome inside MaxLine even
// where every other string is of 128 bytes that all need escaping.
const (
	maxChanges      = 64
	maxChangesBytes = 2048
)

func newReceipt(c Common, k Kind, fields []Committed, own func(*object)) Receipt {
	o := &object{}
	r := Receipt{Kind: k, Time: c.Time, NotBefore: c.NotBefore, Fields: fields}
	r.ID = NewID(c.Time.Wall)
	r.Capture = c.Capture
	r.Session = o.shorten("session", c.Session)
	r.Version = o.shorten("version", c.Version)
	r.Traceparent = o.shorten("traceparent", c.Traceparent)
	if c.Client != nil {
		r.Client = &Client{
			Name:    o.shorten("client.name", c.Client.Name),
			Version: o.shorten("client.version", c.Client.Version),
		}
	}
	if own != nil {
		own(o)
	}
	r.own, r.Cut, r.err = o.b, o.cut, o.err
	return r
}

// NewGenesis opens a chain: both public keys stand in it in full.
func NewGenesis(c Common, headVkey string, receiptPub ed25519.PublicKey) Receipt {
	return newReceipt(c, KindGenesis, nil, keys(headVkey, receiptPub))
}

// NewRotation puts new keys in force from the next seq; the old receipt key
// signs it.
func NewRotation(c Common, headVkey string, receiptPub ed25519.PublicKey) Receipt {
	return newReceipt(c, KindRotation, nil, keys(headVkey, receiptPub))
}

// NewSuccessor opens a chain that follows one which may not be continued.
// witnessHead is the witness's note of the old chain, stripped to what counts.
func NewSuccessor(c Common, headVkey string, receiptPub ed25519.PublicKey, old Old, witnessHead, reason string) Receipt {
	return newReceipt(c, KindSuccessor, nil, func(o *object) {
		keys(headVkey, receiptPub)(o)
		o.open("old")
		o.str("origin", old.Origin)
		o.uint("size", old.Size)
		o.hex("root", old.Root)
		o.close()
		o.str("witnessHead", witnessHead)
		o.free("reason", "reason", reason)
	})
}

func keys(headVkey string, receiptPub ed25519.PublicKey) func(*object) {
	return func(o *object) {
		o.str("headKey", headVkey)
		o.str("receiptKey", base64.StdEncoding.EncodeToString(receiptPub))
	}
}

// NewSessionOpen opens a session. heartbeat is the longest silence to expect.
func NewSessionOpen(c Common, protocol string, heartbeat time.Duration, principal Committed) Receipt {
	return newReceipt(c, KindSessionOpen, []Committed{principal}, func(o *object) {
		o.free("protocol", "protocol", protocol)
		o.int("heartbeat", int64(heartbeat/time.Second))
	})
}

// NewSessionClose ends a session: EndClosed or EndInterrupted.
func NewSessionClose(c Common, end string) Receipt {
	return newReceipt(c, KindSessionClose, nil, func(o *object) {
		o.oneOf("end", end, EndClosed, EndInterrupted)
	})
}

// NewDecision is written before the call is forwarded.
func NewDecision(c Common, d Decision, fields ...Committed) Receipt {
	return newReceipt(c, KindDecision, fields, d.own)
}

// NewDenied states that a call was not forwarded because of a rule.
func NewDenied(c Common, d Decision, fields ...Committed) Receipt {
	return newReceipt(c, KindDenied, fields, d.own)
}

// NewRefused states that a call was not forwarded for a reason other than a
// rule: RefusedSchema, RefusedLoop, RefusedDiscovery, RefusedLimit or
// RefusedEvidence.
func NewRefused(c Common, d Decision, reason string, fields ...Committed) Receipt {
	return newReceipt(c, KindRefused, fields, func(o *object) {
		d.own(o)
		o.oneOf("reason", reason, RefusedSchema, RefusedLoop, RefusedDiscovery, RefusedLimit, RefusedEvidence)
	})
}

func (d Decision) own(o *object) {
	d.Call.own(o)
	o.oneOf("effect", d.Effect, "allow", "deny", "ask")
	o.free("rule", "rule", d.Rule)
	o.hex("policy", d.Policy)
	o.oneOf("mode", d.Mode, ModeEnforced, ModeAdvised)
	if d.Answered == nil {
		return
	}
	o.open("answered")
	o.oneOf("by", d.Answered.By, AnsweredDialog, AnsweredToken, AnsweredNone)
	o.oneOf("shown", d.Answered.Shown, ShownFull, ShownPart)
	o.close()
}

// own writes the call. The id's JSON stands as text inside a string, so that
// an id such as 9007199254740993 or 1.0 survives as sent.
func (c Call) own(o *object) {
	o.open("call")
	o.free("id", "call.id", c.ID)
	o.free("server", "call.server", c.Server)
	o.free("tool", "call.tool", c.Tool)
	o.free("rpc", "call.rpc", string(c.RPC))
	o.close()
}

// NewQuestion states that a person was asked about a call.
func NewQuestion(c Common, call Call, via, outcome string, fields ...Committed) Receipt {
	return newReceipt(c, KindQuestion, fields, asked(call, via, outcome))
}

// NewAnswer states what came of the question.
func NewAnswer(c Common, call Call, via, outcome string, fields ...Committed) Receipt {
	return newReceipt(c, KindAnswer, fields, asked(call, via, outcome))
}

func asked(call Call, via, outcome string) func(*object) {
	return func(o *object) {
		call.own(o)
		o.free("via", "via", via)
		o.free("outcome", "outcome", outcome)
	}
}

// NewOutcome is written before the answer reaches the client.
func NewOutcome(c Common, out Outcome, fields ...Committed) Receipt {
	return newReceipt(c, KindOutcome, fields, out.own)
}

// NewLate states an answer that came after its call had been given up.
func NewLate(c Common, out Outcome, fields ...Committed) Receipt {
	return newReceipt(c, KindLate, fields, out.own)
}

func (out Outcome) own(o *object) {
	out.Call.own(o)
	o.oneOf("status", out.Status, StatusOK, StatusToolError, StatusProtocolError,
		StatusDenied, StatusCancelled, StatusTimeout, StatusUnknown)
	o.int("micros", out.Duration.Microseconds())
	o.changes(out.Changes)
}

// NewGap states that calls ran without receipts.
func NewGap(c Common, g Gap) Receipt {
	return newReceipt(c, KindGap, nil, func(o *object) {
		if !g.From.IsZero() {
			o.str("from", wall(g.From))
			o.str("to", wall(g.To))
		}
		if g.Count > 0 || g.From.IsZero() {
			o.int("count", g.Count)
		}
		o.free("reason", "reason", g.Reason)
	})
}

// NewHeartbeat is a sign of life.
func NewHeartbeat(c Common) Receipt { return newReceipt(c, KindHeartbeat, nil, nil) }

// NewChanged states that a policy, configuration or catalogue was replaced;
// was and now are SHA-256 over the canonical JSON (RFC 8785).
func NewChanged(c Common, what string, was, now [32]byte) Receipt {
	return newReceipt(c, KindChanged, nil, func(o *object) {
		o.oneOf("what", what, ChangedPolicy, ChangedConfig, ChangedCatalogue)
		o.hex("was", was)
		o.hex("now", now)
	})
}

// NewErasure states that salts are to be destroyed (ErasedOnRequest) or were
// lost (ErasedByCrash).
func NewErasure(c Common, erased []Erased, reason string) Receipt {
	return newReceipt(c, KindErasure, nil, func(o *object) {
		o.erased(erased)
		o.oneOf("reason", reason, ErasedOnRequest, ErasedByCrash)
	})
}

// NewPrune states that every line before first was removed: prev is the first
// kept line's link, root the tree's root at size first.
func NewPrune(c Common, first uint64, prev, root [32]byte) Receipt {
	return newReceipt(c, KindPrune, nil, func(o *object) {
		o.open("kept")
		o.uint("first", first)
		o.hex("prev", prev)
		o.hex("root", root)
		o.close()
	})
}

// NewRecovered states that bytes after offset in a segment were quarantined.
func NewRecovered(c Common, segment string, offset, bytes int64) Receipt {
	return newReceipt(c, KindRecovered, nil, func(o *object) {
		o.free("segment", "segment", segment)
		o.int("offset", offset)
		o.int("bytes", bytes)
	})
}

// NewStamped states that a commitment was sent to a witness to be stamped.
func NewStamped(c Common, commitment [32]byte) Receipt {
	return newReceipt(c, KindStamped, nil, func(o *object) { o.hex("commitment", commitment) })
}

// wall writes a wall clock reading: RFC 3339, UTC, nine digits.
func wall(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

var errRange = errors.New("number outside ±(2^53−1)")

func notOneOf(member, v string, allowed []string) error {
	return fmt.Errorf("receipt member %s is %q: must be one of %s", member, v, strings.Join(allowed, ", "))
}
