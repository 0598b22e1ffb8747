package tsa

import (
	"fmt"
	"strconv"
	"strings"
)

// Status is the PKIStatusInfo of a response (RFC 3161 section 2.4.2).
type Status struct {
	Code    int       // 0 granted, 1 granted with modifications, 2 rejection, 3 waiting, 4 and 5 revocation; -1 unreadable
	Text    []string  // the authority's words, escaped and cut to 200 bytes
	Failure []Failure // failure bits, ascending
}

// Failure is a bit of PKIFailureInfo.
type Failure int

// The failures of RFC 3161 section 2.4.2.
const (
	BadAlg              Failure = 0
	BadRequest          Failure = 2
	BadDataFormat       Failure = 5
	TimeNotAvailable    Failure = 14
	UnacceptedPolicy    Failure = 15
	UnacceptedExtension Failure = 16
	AddInfoNotAvailable Failure = 17
	SystemFailure       Failure = 25
)

// String is the name in RFC 3161, or the bit's number.
func (f Failure) String() string {
	switch f {
	case BadAlg:
		return "badAlg"
	case BadRequest:
		return "badRequest"
	case BadDataFormat:
		return "badDataFormat"
	case TimeNotAvailable:
		return "timeNotAvailable"
	case UnacceptedPolicy:
		return "unacceptedPolicy"
	case UnacceptedExtension:
		return "unacceptedExtension"
	case AddInfoNotAvailable:
		return "addInfoNotAvailable"
	case SystemFailure:
		return "systemFailure"
	}
	return "failure bit " + strconv.Itoa(int(f))
}

// granted reports a status that comes with a token.
func (s Status) granted() bool { return s.Code == 0 || s.Code == 1 }

// Permanent reports that asking again cannot help until the request or the
// authority is changed.
func (s Status) Permanent() bool {
	if s.granted() {
		return false
	}
	for _, f := range s.Failure {
		switch f {
		case BadAlg, BadRequest, BadDataFormat, UnacceptedPolicy, UnacceptedExtension:
			return true
		}
	}
	return false
}

// String shows code, failures and text in one printable line.
func (s Status) String() string {
	names := []string{"granted", "granted with modifications", "rejection", "waiting", "revocation warning", "revocation notification"}
	out := "unreadable status"
	switch {
	case s.Code >= 0 && s.Code < len(names):
		out = names[s.Code]
	case s.Code >= 0:
		out = fmt.Sprintf("unknown status %d", s.Code)
	}
	for _, f := range s.Failure {
		out += ", " + f.String()
	}
	if len(s.Text) > 0 {
		out += ": " + strings.Join(s.Text, " ")
	}
	return out
}

// maxText is the longest foreign text that is shown, in bytes before escaping.
const maxText = 200

// shown escapes and cuts foreign text so that it may be printed and logged.
func shown(b []byte) string {
	cut := ""
	if len(b) > maxText {
		b, cut = b[:maxText], "…"
	}
	return strconv.QuoteToASCII(string(b)) + cut
}

// ParseResponse splits a TimeStampResp (RFC 3161 section 2.4.2) into its status
// and the DER of its TimeStampToken. The token is not verified. The error is a
// [*Refusal]: for any status but 0 and 1 (whatever comes with it), for a granted
// status without a token, for bytes that are not DER to the end. The status is
// returned with the error where it could be read.
func ParseResponse(b []byte) (Status, []byte, error) {
	if r := checkDER(b); r != nil {
		return Status{Code: -1}, nil, r
	}
	outer := cursor{rest: b}
	resp, ok := outer.take(tagSequence)
	if !ok {
		return Status{Code: -1}, nil, refuse(RuleResponse, "not a SEQUENCE")
	}
	c := resp.inside()
	info, ok := c.take(tagSequence)
	if !ok {
		return Status{Code: -1}, nil, refuse(RuleResponse, "no PKIStatusInfo")
	}
	status, ok := readStatus(info)
	if !ok {
		return Status{Code: -1}, nil, refuse(RuleStatus, "the status is not a number of RFC 3161")
	}
	if !status.granted() {
		return status, nil, refuse(RuleStatus, "%s", status)
	}
	if c.done() {
		return status, nil, refuse(RuleStatus, "%s, but no token came with it", status)
	}
	token, ok := c.only(tagSequence)
	if !ok {
		return status, nil, refuse(RuleResponse, "not one token after the status")
	}
	return status, token.full, nil
}

// readStatus reads the number strictly, text and failures leniently: some
// authorities encode them badly, and they only inform.
func readStatus(info element) (Status, bool) {
	c := info.inside()
	number, ok := c.take(tagInteger)
	if !ok {
		return Status{}, false
	}
	code, ok := small(number.body)
	if !ok || code < 0 || code > 5 {
		return Status{}, false
	}
	s := Status{Code: int(code)}
	for {
		e, ok := c.next()
		switch {
		case !ok:
			return s, true
		case e.tag == tagSequence:
			s.Text = append(s.Text, readTexts(e)...)
		case e.tag == tagBitString:
			s.Failure = append(s.Failure, readFailures(e.body)...)
		case e.tag&0x20 == 0:
			s.Text = appendText(s.Text, e.body)
		}
	}
}

func readTexts(e element) (texts []string) {
	c := e.inside()
	for !c.done() {
		t, ok := c.next()
		if !ok {
			break
		}
		texts = appendText(texts, t.body)
	}
	return texts
}

// maxTexts bounds how many pieces of text are kept.
const maxTexts = 4

func appendText(texts []string, b []byte) []string {
	if len(texts) >= maxTexts || len(b) == 0 {
		return texts
	}
	return append(texts, shown(b))
}

// readFailures lists the set bits of a BIT STRING body, at most the first 32.
func readFailures(body []byte) (bits []Failure) {
	for i := 1; i < len(body) && i <= 4; i++ {
		for bit := range 8 {
			if body[i]&(0x80>>bit) != 0 {
				bits = append(bits, Failure((i-1)*8+bit))
			}
		}
	}
	return bits
}

// SplitToken returns the TimeStampToken in b, which is a token itself or a
// response around one.
func SplitToken(b []byte) ([]byte, error) {
	if r := checkDER(b); r != nil {
		return nil, r
	}
	outer := cursor{rest: b}
	if e, ok := outer.take(tagSequence); ok && e.inside().peek(tagOID) {
		return b, nil
	}
	_, token, err := ParseResponse(b)
	return token, err
}

// WrapToken puts a response of status 0 around a token, for readers that want
// a TimeStampResp.
func WrapToken(token []byte) []byte { return encodeGranted(token) }
