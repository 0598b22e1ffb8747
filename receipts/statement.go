package receipts

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "urn:uuid:aff68697-a123-4b47-9641-4a0e630061a6"
	formatPrefix  = "tool-guardian/receipt/"
	format        = formatPrefix + "1"
)

// Subject is one named digest of a statement.
type Subject struct {
	Name   string // a field's name, or "prev"
	Digest [32]byte
}

// Statement holds the members a verifier checks. Everything else of the
// payload stays in Raw, to be shown.
type Statement struct {
	Kind       Kind
	Origin     string
	Seq        uint64
	Prev       [32]byte
	KeySeq     uint64
	HeadKey    string            // vkey line; only of kinds that bring keys
	ReceiptKey ed25519.PublicKey // only of kinds that bring keys
	Erased     []Erased          // only of an erasure
	NotBefore  *NotBefore
	Subjects   []Subject
	Raw        []byte // the payload

	predicate     []byte
	session, call []byte // values inside it, which every reader of a chain asks for
}

// ParseStatement parses a payload as formats.md's paragraph on strictness
// says: UTF-8, one JSON object, no member twice at any depth, every number an
// integer within ±(2^53−1), and the checked members present and well formed.
// Unknown members, order and white space are free. It returns ErrVersion for a
// newer format, else ErrMalformed. The statement refers to payload's bytes.
func ParseStatement(payload []byte) (*Statement, error) {
	if err := checkText(payload); err != nil {
		return nil, fmt.Errorf("%w payload: %w", ErrMalformed, err)
	}
	s := &Statement{Raw: payload}
	if err := s.parse(); err != nil {
		return nil, err
	}
	return s, nil
}

func checkText(payload []byte) error {
	if !utf8.Valid(payload) {
		return fmt.Errorf("not UTF-8")
	}
	sc := scanner{b: payload, maxDepth: maxStatementDepth}
	if err := sc.document(); err != nil {
		return err
	}
	sc.i = 0
	sc.space()
	switch {
	case sc.peek() != '{':
		return fmt.Errorf("not a JSON object")
	case sc.dup:
		return fmt.Errorf("a member stands twice")
	case sc.bigInt, sc.notInteger:
		return fmt.Errorf("a number is not an integer within ±(2^53−1)")
	case sc.loneHalf:
		return fmt.Errorf("a string holds half a surrogate pair")
	}
	return nil
}

func malformed(member string, why string) error {
	return fmt.Errorf("%w payload: %s %s", ErrMalformed, member, why)
}

func (s *Statement) parse() error {
	top := pick(s.Raw, "_type", "subject", "predicateType", "predicate")
	if v, _ := text(top[0]); v != statementType {
		return malformed("_type", "is not "+statementType)
	}
	if v, _ := text(top[2]); v != predicateType {
		return malformed("predicateType", "is not "+predicateType)
	}
	s.predicate = top[3]
	if err := s.parsePredicate(); err != nil {
		return err
	}
	return s.parseSubjects(top[1])
}

// pick returns the raw values of the named members of a scanned object, nil
// where absent.
func pick(obj []byte, names ...string) [][]byte {
	out := make([][]byte, len(names))
	members(obj, func(name, raw []byte) {
		for i, want := range names {
			if string(name) == want {
				out[i] = raw
			}
		}
	})
	return out
}

func (s *Statement) parsePredicate() error {
	p := pick(s.predicate, "format", "kind", "origin", "seq", "prev", "keySeq",
		"headKey", "receiptKey", "erased", "notBefore", "session", "call")
	s.session, s.call = p[10], p[11]
	if err := checkFormat(p[0]); err != nil {
		return err
	}
	kind, _ := text(p[1])
	if s.Kind = Kind(kind); kind == "" {
		return malformed("kind", "is not a name")
	}
	if s.Origin, _ = text(p[2]); !ValidOrigin(s.Origin) {
		return malformed("origin", "is not <label>/c/<32 hex>")
	}
	var ok bool
	if s.Seq, ok = number(p[3]); !ok {
		return malformed("seq", "is not a number")
	}
	if s.Prev, ok = digest(p[4]); !ok {
		return malformed("prev", "is not 64 hex digits")
	}
	if s.KeySeq, ok = number(p[5]); !ok {
		return malformed("keySeq", "is not a number")
	}
	return s.parseByKind(p[6], p[7], p[8], p[9])
}

func checkFormat(raw []byte) error {
	v, _ := text(raw)
	if v == format {
		return nil
	}
	n, found := strings.CutPrefix(v, formatPrefix)
	if _, err := strconv.ParseUint(n, 10, 32); found && err == nil {
		return fmt.Errorf("%w: format %s, this program knows %s", ErrVersion, v, format)
	}
	return malformed("format", "is not "+format)
}

func (s *Statement) parseByKind(headKey, receiptKey, erased, notBefore []byte) error {
	if s.Kind.BringsKeys() {
		if err := s.parseKeys(headKey, receiptKey); err != nil {
			return err
		}
	}
	if s.Kind == KindErasure {
		if err := s.parseErased(erased); err != nil {
			return err
		}
	}
	if notBefore == nil {
		return nil
	}
	p := pick(notBefore, "token", "checkpoint")
	token, ok1 := digest(p[0])
	checkpoint, ok2 := digest(p[1])
	if !ok1 || !ok2 {
		return malformed("notBefore", "does not hold two digests")
	}
	s.NotBefore = &NotBefore{Token: token, Checkpoint: checkpoint}
	return nil
}

func (s *Statement) parseKeys(headKey, receiptKey []byte) error {
	s.HeadKey, _ = text(headKey)
	if _, err := HeadPublicKey(s.HeadKey); err != nil {
		return malformed("headKey", err.Error())
	}
	if !strings.HasPrefix(s.HeadKey, s.Origin+"+") {
		return malformed("headKey", "is not named by the origin")
	}
	v, _ := text(receiptKey)
	pub, err := decodeBase64(v)
	if err != nil || !validKey(pub) {
		return malformed("receiptKey", "is not the base64 of an Ed25519 key")
	}
	s.ReceiptKey = pub
	return nil
}

func (s *Statement) parseErased(raw []byte) error {
	if len(raw) == 0 || raw[0] != '[' {
		return malformed("erased", "is not a list")
	}
	for e := range elements(raw) {
		p := pick(e, "seq", "field")
		seq, ok := number(p[0])
		field, _ := text(p[1])
		if !ok || field == "" {
			return malformed("erased", "does not hold seq and field")
		}
		s.Erased = append(s.Erased, Erased{Seq: seq, Field: field})
	}
	return nil
}

// parseSubjects checks that subjects are the committed fields in order of id,
// or the one named prev.
func (s *Statement) parseSubjects(raw []byte) error {
	if len(raw) == 0 || raw[0] != '[' {
		return malformed("subject", "is not a list")
	}
	var last FieldID
	for e := range elements(raw) {
		p := pick(e, "name", "digest")
		name, _ := text(p[0])
		d, ok := digest(pick(p[1], "sha256")[0])
		if !ok || name == "" {
			return malformed("subject", "does not hold a name and a digest")
		}
		f := FieldNamed(name)
		if f != 0 && f <= last {
			return malformed("subject", "names "+name+" out of order")
		}
		last = max(last, f)
		s.Subjects = append(s.Subjects, Subject{Name: name, Digest: d})
	}
	return s.checkPrevSubject()
}

func (s *Statement) checkPrevSubject() error {
	if len(s.Subjects) == 0 {
		return malformed("subject", "is empty")
	}
	for _, sub := range s.Subjects {
		if sub.Name == "prev" && (len(s.Subjects) > 1 || sub.Digest != s.Prev) {
			return malformed("subject", "prev is not the one link")
		}
	}
	return nil
}

// Session is the session's name as the receipt states it, "" where it does not.
func (s *Statement) Session() string {
	v, _ := text(s.session)
	return v
}

// CallID is the id that joins the receipts of one call, "" where there is none.
func (s *Statement) CallID() string {
	v, _ := text(pick(s.call, "id")[0])
	return v
}

// Text returns the string at a path inside the predicate, "" where there is
// none: for what a verifier shows and does not judge.
func (s *Statement) Text(path ...string) string {
	v, _ := text(s.Value(path...))
	return v
}

// Value returns the raw JSON at a path inside the predicate, nil where there
// is none.
func (s *Statement) Value(path ...string) []byte {
	at := s.predicate
	for _, name := range path {
		at = pick(at, name)[0]
	}
	return at
}

// ValidOrigin reports whether o is `<label>/c/<32 hex>`.
func ValidOrigin(o string) bool {
	label, rest, ok := strings.Cut(o, "/c/")
	return ok && ValidLabel(label) && len(rest) == 32 && isHex(rest)
}

// ValidLabel reports whether s may stand before /c/ in an origin: 1 to 100
// bytes of a-z 0-9 . -
func ValidLabel(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '.' && c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 100
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func number(raw []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(raw), 10, 64)
	return n, err == nil && n <= maxInteger
}

func digest(raw []byte) (d [32]byte, ok bool) {
	v, _ := text(raw)
	if len(v) != 64 || !isHex(v) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(v))
	return d, err == nil
}

// decodeBase64 accepts only what encoding would write.
func decodeBase64(v string) ([]byte, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(v)
	if err == nil && base64.StdEncoding.EncodeToString(b) != v {
		err = base64.CorruptInputError(0)
	}
	return b, err
}
