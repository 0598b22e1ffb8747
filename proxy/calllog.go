package proxy

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"toolguardian/policy"
	"toolguardian/proxy/front"
	"toolguardian/proxy/journal"
	"toolguardian/proxy/wire"
)

// The rows of the call log. They hold names, counts and codes: an argument's
// value or a result's text is never in one.

const (
	sessionStart = "start"
	sessionEnd   = "end"
	harness      = "mcp"
	maxKeys      = 64  // arguments named in a row
	maxName      = 128 // bytes of a name in a row
)

func (r *Router) logSession(s *session, event string) {
	now := r.o.Now()
	r.o.Calls.Add(func() journal.Row {
		return journal.Row{Time: now, Session: s.ID, Kind: journal.KindSession, Event: event, Harness: harness, Client: cutName(s.Client.Name)}
	})
}

// logLook is the row of a tool that only looks for others.
func (r *Router) logLook(s *session, c front.Call, began time.Time, a answer, result json.RawMessage) {
	took := r.o.Now().Sub(began)
	r.o.Calls.Add(func() journal.Row {
		row := callRow(s, c, began, took, a.code())
		row.Server, row.Target = named(c.Arguments, "server"), named(c.Arguments, "tool")
		n, _ := textChars(result)
		row.OriginalChars, row.FinalChars = &n, &n
		return row.Row
	})
}

// logCall is the row of a call_tool, whatever came of it.
func (r *Router) logCall(t *trip, result json.RawMessage, err error) {
	took := r.o.Now().Sub(t.began)
	r.o.Calls.Add(func() journal.Row {
		row := callRow(t.s, t.c, t.began, took, t.code)
		row.Server, row.Target = cutName(t.server), cutName(t.target)
		row.ArgKeys = t.keys()
		if err == nil {
			came := t.end.received
			if came == nil {
				came = result
			}
			row.count(came, result, t.end.around)
		}
		row.SpillID, row.Rule = t.shaped.ID, ruleNames(t.shaped.Rules)
		return row.Row
	})
}

// logDenial is the row of a call that the policy did not let through.
func (r *Router) logDenial(t *trip) {
	r.o.Calls.Add(func() journal.Row {
		return journal.Row{
			Time: t.began, Session: t.s.ID, Kind: journal.KindPolicy, Server: cutName(t.tool.Server), Tool: cutName(t.tool.Name),
			Decision: string(t.decision.Effect), Rule: t.decision.Rule, Via: viaRule, Outcome: outcomeDenied,
		}
	})
}

// What a policy row says of how its decision was reached.
const (
	viaRule       = "rule"
	outcomeDenied = string(policy.Deny)
)

type row struct{ journal.Row }

func callRow(s *session, c front.Call, began time.Time, took time.Duration, code string) *row {
	ok, ms := code == "", took.Milliseconds()
	return &row{journal.Row{Time: began, Session: s.ID, Kind: journal.KindCall, Tool: c.Name, OK: &ok, Millis: &ms, Error: code}}
}

// count tells how long a result's text was, and how long what was shown. Where
// only blocks of ours, of around characters, stand beside it, it is counted once.
func (r *row) count(came, shown json.RawMessage, around int) {
	original, blocks := textChars(came)
	final := original + around
	if around == 0 || !blocks {
		final, _ = textChars(shown)
	}
	r.OriginalChars, r.FinalChars = &original, &final
}

// keys are the names of a call's arguments: as sent, or as the model wrote
// them where nothing was sent, without the router's own.
func (t *trip) keys() (out []string) {
	from, flat := t.sent, false
	if from == nil {
		from, flat = t.received, bytes.Equal(t.received, t.c.Arguments)
	}
	for m, err := range wire.Members(from) {
		if err != nil || len(out) == maxKeys {
			break
		}
		if !flat || m.Key != "server" && m.Key != "tool" {
			out = append(out, cutName(m.Key))
		}
	}
	return out
}

func named(arguments json.RawMessage, key string) string {
	s, _ := wire.GetString(arguments, key)
	return cutName(s)
}

func cutName(s string) string {
	if len(s) <= maxName {
		return s
	}
	end := maxName
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// textChars counts the characters of a result's text blocks; of a result
// without any, those of its JSON.
func textChars(result json.RawMessage) (n int, blocks bool) {
	all := wire.Texts(result)
	for _, text := range all {
		n += quotedChars(text)
	}
	if all == nil {
		return utf8.RuneCount(result), false
	}
	return n, true
}

// quotedChars counts the characters a JSON string stands for, without forming
// it.
func quotedChars(quoted []byte) int {
	inner := quoted[1 : len(quoted)-1]
	n := utf8.RuneCount(inner)
	for {
		i := bytes.IndexByte(inner, '\\')
		if i < 0 {
			return n
		}
		size := len(`\n`)
		if inner[i+1] == 'u' {
			size = len(`\u0041`)
			if pair(inner[i:]) {
				size *= 2
			}
		}
		n, inner = n-(size-1), inner[i+size:]
	}
}

// pair says whether two escapes that stand for one character come first
// (RFC 8259 section 7).
func pair(b []byte) bool {
	return surrogate(b, "89abAB") && surrogate(b[min(6, len(b)):], "cdefCDEF")
}

// surrogate says whether an escape from d800 on comes first, with one of these
// second digits.
func surrogate(b []byte, digits string) bool {
	return len(b) >= 6 && b[0] == '\\' && b[1] == 'u' && b[2]|0x20 == 'd' && strings.IndexByte(digits, b[3]) >= 0
}
