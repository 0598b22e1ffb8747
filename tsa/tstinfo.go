package tsa

import (
	"strings"
	"time"
)

const (
	maxSerialBits = 160                  // RFC 3161 section 2.4.2
	maxAccuracy   = 366 * 24 * time.Hour // beyond it an accuracy says nothing
)

// tstInfo is what the signer states (RFC 3161 section 2.4.2).
type tstInfo struct {
	Token
	imprint  algorithm // of Token.Imprint, accepted or not
	sum      []byte
	critical string // dotted OID of an unknown critical extension
}

// parseTSTInfo reads the signed content strictly; what it states is judged later.
func parseTSTInfo(content []byte) (tstInfo, *Refusal) {
	var t tstInfo
	if checkDER(content) != nil {
		return t, refuse(RuleTSTInfo, "the signed content is not DER")
	}
	outer := cursor{rest: content}
	info, ok := outer.take(tagSequence)
	if !ok {
		return t, refuse(RuleTSTInfo, "not a SEQUENCE")
	}
	c := info.inside()
	version, ok := c.take(tagInteger)
	if n, small := small(version.body); !ok || !small || n != 1 {
		return t, refuse(RuleTSTInfo, "version is not 1")
	}
	for _, read := range []func(*cursor) *Refusal{
		t.readPolicy, t.readImprint, t.readSerial, t.readTime,
		t.readAccuracy, t.readOrdering, t.readNonce, t.readTail,
	} {
		if r := read(c); r != nil {
			return t, r
		}
	}
	return t, nil
}

func (t *tstInfo) readPolicy(c *cursor) *Refusal {
	oid, ok := c.take(tagOID)
	if ok {
		t.Policy, ok = dotted(oid.body)
	}
	if !ok {
		return refuse(RuleTSTInfo, "unreadable policy")
	}
	return nil
}

func (t *tstInfo) readImprint(c *cursor) *Refusal {
	a, sum, ok := readImprint(c)
	if !ok {
		return refuse(RuleTSTInfo, "unreadable imprint")
	}
	t.imprint, t.sum = a, sum
	if h, ok := sha2(a); ok {
		t.Imprint = Imprint{Hash: h, Sum: sum}
	}
	return nil
}

// readImprint reads a MessageImprint of any algorithm and length.
func readImprint(c *cursor) (a algorithm, sum []byte, ok bool) {
	e, ok := c.take(tagSequence)
	if !ok {
		return a, nil, false
	}
	in := e.inside()
	id, ok := in.take(tagSequence)
	if !ok {
		return a, nil, false
	}
	if a, ok = readAlgorithm(id.inside()); !ok {
		return a, nil, false
	}
	octets, ok := in.only(tagOctetString)
	return a, octets.body, ok
}

func (t *tstInfo) readSerial(c *cursor) *Refusal {
	e, ok := c.take(tagInteger)
	if !ok || len(e.body) > maxSerialBits/8+1 {
		return refuse(RuleTSTInfo, "no serial number of at most %d bits", maxSerialBits)
	}
	n, ok := integer(e.body)
	if !ok || n.Sign() < 0 || n.BitLen() > maxSerialBits {
		return refuse(RuleTSTInfo, "serial number negative, or of more than %d bits", maxSerialBits)
	}
	t.Serial = n
	return nil
}

func (t *tstInfo) readTime(c *cursor) *Refusal {
	e, ok := c.take(tagGeneralizedTime)
	if !ok {
		return refuse(RuleTSTInfo, "no genTime")
	}
	at, ok := parseGenTime(string(e.body))
	if !ok {
		return refuse(RuleGenTime, "%s is not UTC as YYYYMMDDhhmmss[.f…]Z without a trailing zero", shown(e.body))
	}
	t.Time = at
	return nil
}

// parseGenTime reads the DER form: seconds always, a fraction of at most nine
// digits that does not end in 0, then Z. time.Parse takes digits beyond the
// form, so the length is fixed first.
func parseGenTime(s string) (time.Time, bool) {
	digits, utc := strings.CutSuffix(s, "Z")
	whole, fraction, has := strings.Cut(digits, ".")
	if !utc || len(whole) != 14 || strings.Trim(whole+fraction, "0123456789") != "" {
		return time.Time{}, false
	}
	if has && (fraction == "" || len(fraction) > 9 || strings.HasSuffix(fraction, "0")) {
		return time.Time{}, false
	}
	at, err := time.Parse("20060102150405", digits)
	return at.UTC(), err == nil
}

// readAccuracy reads Accuracy. An empty one states nothing.
func (t *tstInfo) readAccuracy(c *cursor) *Refusal {
	e, ok := c.option(tagSequence)
	if !ok {
		return nil
	}
	in := e.inside()
	t.AccuracyStated = !in.done()
	t.Accuracy, ok = accuracyPart(in, tagInteger, 0, int64(maxAccuracy/time.Second), time.Second)
	if !ok {
		return refuse(RuleTSTInfo, "accuracy seconds out of range")
	}
	millis, okMillis := accuracyPart(in, tagPrimitive0, 1, 999, time.Millisecond)
	micros, okMicros := accuracyPart(in, tagPrimitive1, 1, 999, time.Microsecond)
	if !okMillis || !okMicros || !in.done() {
		return refuse(RuleTSTInfo, "accuracy out of range")
	}
	t.Accuracy += millis + micros
	return nil
}

func accuracyPart(c *cursor, tag byte, low, high int64, unit time.Duration) (time.Duration, bool) {
	e, ok := c.option(tag)
	if !ok {
		return 0, true
	}
	n, ok := small(e.body)
	if !ok || n < low || n > high {
		return 0, false
	}
	return time.Duration(n) * unit, true
}

func (t *tstInfo) readOrdering(c *cursor) *Refusal {
	if e, ok := c.option(tagBoolean); ok && !validBool(e) {
		return refuse(RuleTSTInfo, "ordering is not a DER BOOLEAN")
	}
	return nil
}

// validBool accepts both values: some authorities write the default out.
func validBool(e element) bool {
	return len(e.body) == 1 && (e.body[0] == 0 || e.body[0] == 0xff)
}

func (t *tstInfo) readNonce(c *cursor) *Refusal {
	e, ok := c.option(tagInteger)
	if !ok {
		return nil
	}
	if t.Nonce, ok = integer(e.body); !ok {
		return refuse(RuleTSTInfo, "nonce is not a DER INTEGER")
	}
	return nil
}

// readTail reads the authority's name and the extensions, then requires the end.
func (t *tstInfo) readTail(c *cursor) *Refusal {
	c.option(tagContext0)
	if e, ok := c.option(tagContext1); ok && !t.readExtensions(e.inside()) {
		return refuse(RuleTSTInfo, "unreadable extensions")
	}
	if !c.done() {
		return refuse(RuleTSTInfo, "a field that RFC 3161 does not have, or out of order")
	}
	return nil
}

// readExtensions remembers the first critical one: we know none.
func (t *tstInfo) readExtensions(c *cursor) bool {
	for !c.done() {
		e, ok := c.take(tagSequence)
		if !ok {
			return false
		}
		in := e.inside()
		oid, ok := in.take(tagOID)
		if !ok {
			return false
		}
		critical, has := in.option(tagBoolean)
		if has && !validBool(critical) {
			return false
		}
		if _, ok = in.only(tagOctetString); !ok {
			return false
		}
		if has && critical.body[0] != 0 && t.critical == "" {
			t.critical = algorithm{oid: string(oid.body)}.name()
		}
	}
	return true
}
