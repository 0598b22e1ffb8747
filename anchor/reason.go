package anchor

// Reason is one word of the closed list that a verdict rests on.
type Reason string

// The reasons, in order of weight.
const (
	Altered         Reason = "ALTERED"
	Rewritten       Reason = "REWRITTEN"
	Fork            Reason = "FORK"
	WitnessFork     Reason = "WITNESS_FORK"
	WitnessRollback Reason = "WITNESS_ROLLBACK"
	Truncated       Reason = "TRUNCATED"
	Absent          Reason = "ABSENT"
	Spliced         Reason = "SPLICED"
	Gap             Reason = "GAP"
	Duplicate       Reason = "DUPLICATE"
	Revoked         Reason = "REVOKED"
	BadTime         Reason = "BAD_TIME"
	Malformed       Reason = "MALFORMED"
	Torn            Reason = "TORN"
	Doubtful        Reason = "DOUBTFUL"
	Unprotected     Reason = "UNPROTECTED"
	ErasedSalt      Reason = "ERASED"
	UnknownVersion  Reason = "UNKNOWN_VERSION"
	Unpinned        Reason = "UNPINNED"
	MissingTime     Reason = "MISSING_TIME"
)

// Reasons returns the closed list in order of weight.
func Reasons() []Reason {
	return []Reason{Altered, Rewritten, Fork, WitnessFork, WitnessRollback, Truncated, Absent, Spliced, Gap,
		Duplicate, Revoked, BadTime, Malformed, Torn, Doubtful, Unprotected, ErasedSalt, UnknownVersion, Unpinned, MissingTime}
}

func (r Reason) weight() int {
	for i, known := range Reasons() {
		if known == r {
			return i
		}
	}
	return len(Reasons())
}

// exit is the exit code that a reason asks for: 1 from ALTERED to MALFORMED,
// 2 below. One good token turns BAD_TIME into 2, which the finding says.
func (r Reason) exit() int {
	if r.weight() <= Malformed.weight() {
		return ExitFail
	}
	return ExitIncomplete
}

// Exit codes of a verdict.
const (
	ExitPass       = 0
	ExitFail       = 1
	ExitIncomplete = 2
)

// AxisName names one of the eight sides a verdict is judged on.
type AxisName string

// The axes, in the order of a report.
const (
	AxisStructure    AxisName = "structure"
	AxisSignatures   AxisName = "signatures"
	AxisKey          AxisName = "key"
	AxisChain        AxisName = "chain"
	AxisWitness      AxisName = "witness"
	AxisTime         AxisName = "time"
	AxisCompleteness AxisName = "completeness"
	AxisPrivacy      AxisName = "privacy"
)

func axisNames() []AxisName {
	return []AxisName{AxisStructure, AxisSignatures, AxisKey, AxisChain, AxisWitness, AxisTime, AxisCompleteness, AxisPrivacy}
}
