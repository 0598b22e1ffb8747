package tsa

// Status is the PKIStatusInfo of a response (RFC 3161 section 2.4.2).
type Status struct {
	Code    int       // 0 granted, 1 granted with modifications, 2 rejection, 3 waiting, …
	Text    []string  // the authority's words, printable and cut
	Failure []Failure // failure bits, in order
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

// ParseResponse splits a TimeStampResp.
func ParseResponse(b []byte) (Status, []byte, error) {
	return Status{}, nil, refuse(RuleUnsupported, "not built yet")
}
