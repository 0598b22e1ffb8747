package proxy

import (
	"encoding/json"
	"errors"
	"strings"

	"toolguardian/proxy/args"
	"toolguardian/proxy/catalogue"
)

// answer is what the router itself says: a block for each notice, one for the
// text, one for what to do next.
type answer struct {
	notices    []string
	text, next string
	failed     bool
	alone      bool // the text stands first, whatever else there is
}

// refusal is an answer that begins with a stable code.
func refusal(code, text, next string) answer {
	return answer{text: code + ": " + text, next: next, failed: true}
}

// code is the word a failed answer begins with; "" where nothing failed.
func (a answer) code() string {
	if !a.failed {
		return ""
	}
	word, _, _ := strings.Cut(a.text, " ")
	return strings.TrimSuffix(word, ":")
}

// Codes of what the router refuses or reports, for scripts and models.
const (
	codeArguments = "BAD_ARGUMENTS"
	codeNotFound  = "NOT_FOUND"
	codeDenied    = "POLICY_DENIED"
	codeLoop      = "REPEATED"
	codeDiscovery = "LOOKED_ENOUGH"
	codeEvidence  = "EVIDENCE_FAILED"
	codeNotSent   = "NOT_SENT"
	codeTimeout   = "TIMEOUT"
	codeDied      = "DIED"
	codeProtocol  = "BACKEND_ERROR"
)

// explain turns an error of the router's own arguments or names into an answer.
func explain(err error) answer {
	var bad *args.Error
	if errors.As(err, &bad) {
		return refusal(codeArguments, bad.Error(), bad.Next)
	}
	var missing *catalogue.Missing
	if errors.As(err, &missing) {
		return refusal(codeNotFound, missing.Error(), missing.Next)
	}
	var down notUp
	if errors.As(err, &down) {
		return refusal(codeNotSent, down.Error(), "use list_capabilities with server "+down.server+" again in a moment, or use another server.")
	}
	return refusal(codeArguments, err.Error(), "correct the call, or tell the user.")
}

// result is the answer as a tools/call result. With raw, nothing is added to
// the text.
func (a answer) result(raw bool) json.RawMessage {
	b := []byte(`{"content":`)
	switch body := textBlock(a.text); {
	case raw:
		b = appendArray(b, nil, body, nil)
	case a.alone:
		b = appendArray(b, nil, body, append(noticeBlocks(a.notices), nextStep(a.next)))
	default:
		b = appendArray(b, noticeBlocks(a.notices), body, [][]byte{nextStep(a.next)})
	}
	if a.failed {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}')
}

// nextStep is nothing where there is nothing to say.
func nextStep(next string) []byte {
	if next == "" {
		return nil
	}
	return textBlock(nextPrefix + next)
}

const nextPrefix = "NEXT STEP: "

// noticeBlocks are blocks of our own, before what a backend or we have to say.
func noticeBlocks(notices []string) [][]byte {
	blocks := make([][]byte, len(notices), len(notices)+1)
	for i, n := range notices {
		blocks[i] = textBlock(n)
	}
	return blocks
}

// textBlock is a content block that holds text, byte for byte: only what JSON
// requires is escaped.
func textBlock(text string) []byte {
	b := make([]byte, 0, len(text)+32)
	b = append(b, `{"type":"text","text":`...)
	return append(appendText(b, text), '}')
}

const hexDigits = "0123456789abcdef"

// appendText writes a JSON string (RFC 8259 section 7). Bytes above 0x1f pass
// as they are, even where they are no UTF-8.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}
