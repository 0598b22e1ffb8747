package receipts

// Kind names what a receipt states. A kind outside this list is hashed,
// counted and shown by a verifier, never refused.
type Kind string

// The kinds of format 1.
const (
	KindGenesis      Kind = "genesis"
	KindRotation     Kind = "rotation"
	KindSuccessor    Kind = "successor"
	KindSessionOpen  Kind = "session-open"
	KindSessionClose Kind = "session-close"
	KindDecision     Kind = "decision"
	KindDenied       Kind = "denied"
	KindRefused      Kind = "refused"
	KindQuestion     Kind = "question"
	KindAnswer       Kind = "answer"
	KindOutcome      Kind = "outcome"
	KindLate         Kind = "late"
	KindGap          Kind = "gap"
	KindHeartbeat    Kind = "heartbeat"
	KindChanged      Kind = "changed"
	KindErasure      Kind = "erasure"
	KindPrune        Kind = "prune"
	KindRecovered    Kind = "recovered"
	KindStamped      Kind = "stamped"
)

// BringsKeys reports whether a receipt of this kind holds the chain's keys in
// full: genesis, successor and rotation.
func (k Kind) BringsKeys() bool {
	return k == KindGenesis || k == KindSuccessor || k == KindRotation
}

// OpensChain reports whether a receipt of this kind is the first of its chain.
func (k Kind) OpensChain() bool { return k == KindGenesis || k == KindSuccessor }

// FieldID numbers a committed field; the order of ids is the order of subjects.
type FieldID uint64

// The committed fields. An absent FieldArgsReceived or FieldResultDelivered
// states that those bytes equal the ones sent or received.
const (
	FieldArgsSent        FieldID = 1
	FieldArgsReceived    FieldID = 2
	FieldResultReceived  FieldID = 3
	FieldResultDelivered FieldID = 4
	FieldPrincipal       FieldID = 16
	FieldApprover        FieldID = 17
)

// Fields lists every known field in order of id.
func Fields() []FieldID {
	return []FieldID{FieldArgsSent, FieldArgsReceived, FieldResultReceived,
		FieldResultDelivered, FieldPrincipal, FieldApprover}
}

// String is the name a subject and an opening carry; "" for an unknown id.
func (f FieldID) String() string {
	switch f {
	case FieldArgsSent:
		return "args_sent"
	case FieldArgsReceived:
		return "args_received"
	case FieldResultReceived:
		return "result_received"
	case FieldResultDelivered:
		return "result_delivered"
	case FieldPrincipal:
		return "principal"
	case FieldApprover:
		return "approver"
	}
	return ""
}

// FieldNamed returns the field of that name, 0 for a name not of format 1.
func FieldNamed(name string) FieldID {
	for _, f := range Fields() {
		if f.String() == name {
			return f
		}
	}
	return 0
}

// Capture says where the call was seen.
const (
	CaptureProxy = "proxy"
	CaptureHook  = "hook"
	CaptureCLI   = "cli"
)

// How a decision was enforced, who answered, how much was shown.
const (
	ModeEnforced = "enforced"
	ModeAdvised  = "advised"

	AnsweredDialog = "dialog"
	AnsweredToken  = "token"
	AnsweredNone   = "none"

	ShownFull = "full"
	ShownPart = "part"
)

// Reasons of a refused receipt.
const (
	RefusedSchema    = "schema"
	RefusedLoop      = "loop"
	RefusedDiscovery = "discovery"
	RefusedLimit     = "limit"
	RefusedEvidence  = "evidence"
)

// Status of an outcome.
const (
	StatusOK            = "ok"
	StatusToolError     = "tool_error"
	StatusProtocolError = "protocol_error"
	StatusDenied        = "denied"
	StatusCancelled     = "cancelled"
	StatusTimeout       = "timeout"
	StatusUnknown       = "unknown"
)

// Ends of a session, things that change, reasons of an erasure.
const (
	EndClosed      = "closed"
	EndInterrupted = "interrupted"

	ChangedPolicy    = "policy"
	ChangedConfig    = "config"
	ChangedCatalogue = "catalogue"

	ErasedOnRequest = "request"
	ErasedByCrash   = "crash"
)
