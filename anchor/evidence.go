package anchor

import (
	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// Evidence is what a witness log holds on one head of a chain, each leaf with
// its tlog-proof at one checkpoint. It is bytes of a stranger until judged.
type Evidence struct {
	LeafBytes []byte // the head leaf
	Leaf      tlog.Proof
	Keys      []KeyEvidence // from the enrolment to the key leaf in force
	Times     []TimeEvidence
	Blobs     [][]byte // validation data named by Times
}

// KeyEvidence is one key leaf with its proof.
type KeyEvidence struct {
	Bytes []byte
	Proof tlog.Proof
}

// TimeEvidence is one token over the checkpoint of an Evidence.
type TimeEvidence struct {
	Authority string // a label
	Blobs     []api.BlobRef
	Token     []byte // TimeStampToken, DER
}

// Snapshot is what a witness answered about one origin, fetched before it is
// judged. Nothing in it is trusted.
type Snapshot struct {
	Witness string // URL
	Origin  string
	Head    []byte // note from /<hex>/checkpoint; nil: the witness has none
	Newest  *Evidence
	// Stamped covers a head by a timestamped checkpoint: the newest head's when
	// it is stamped already, else the latest earlier one's. Nil: none.
	Stamped *Evidence
	// After are the origin's leaves behind the newest head's, in order, at the
	// same checkpoint: what was said of its keys since.
	After []KeyEvidence
	// Forks are the fork files that accuse the origin.
	Forks [][]byte
	// Links are consistency paths between the checkpoints in play.
	Links []LogLink
}

// LogLink is the RFC 9162 path between two sizes of the witness log.
type LogLink struct {
	From, To uint64
	Path     []tlog.Hash
}

// Head note and index of one line of a flat anchor file, and of a checkpoint
// file alike.
type witnessedHead struct {
	checkpoint tlog.Checkpoint
	note       tlog.Note
	source     string
}
