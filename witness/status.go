package witness

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// Status is the state of the witness as its operator sees it.
type Status struct {
	Origin     string     `json:"origin"`
	Log        string     `json:"log"`      // vkey
	Cosigner   string     `json:"cosigner"` // vkey
	Size       uint64     `json:"size"`
	Root       tlog.Hash  `json:"root"`
	Checkpoint string     `json:"checkpoint"` // signed
	Agents     int        `json:"agents"`
	Stamped    uint64     `json:"stamped"`    // size of the newest stamped checkpoint
	StampedAt  time.Time  `json:"stamped_at"` // by the newest of its tokens; zero: never
	Time       TimeStatus `json:"time"`
	HeadFile   string     `json:"head_file"` // empty: none
	Queued     int        `json:"queued"`    // requests that wait for the sequencer
	Commits    uint64     `json:"commits"`   // batches since the start
	Requests   uint64     `json:"requests"`  // requests in them
	Unhealthy  string     `json:"unhealthy,omitempty"`

	Cosigned *CosignStatus `json:"cosigned,omitempty"` // nil: no cosigners are configured
	Logs     []ForeignLog  `json:"logs,omitempty"`     // of others: cosigned, recorded, not logged

	Audit *AuditStatus `json:"audit,omitempty"` // nil: not yet in this process
}

// Agent is one enrolled origin.
type Agent struct {
	Origin   string         `json:"origin"`
	Key      string         `json:"key"`       // newest vkey, in force unless revoked
	KeyFrom  uint64         `json:"key_from"`  // size of the smallest head that it signs
	KeyIndex uint64         `json:"key_index"` // of the newest key leaf
	Revoked  *AgentRevoked  `json:"revoked,omitempty"`
	HeadSize uint64         `json:"head_size"`
	HeadRoot tlog.Hash      `json:"head_root"`
	HeadAt   uint64         `json:"head_index"`
	HeadTime time.Time      `json:"head_time"`       // zero: no head yet
	State    api.EventState `json:"state,omitempty"` // as its owner reported it

	Forks     []uint64 `json:"forks,omitempty"`     // indexes of the fork leaves that accuse it
	Rollbacks []uint64 `json:"rollbacks,omitempty"` // of the rollback leaves over its heads
	Conflicts uint64   `json:"conflicts"`           // valid heads that were refused, such as a clone's
}

// AgentRevoked says which leaf revoked the key, and from which leaf on its
// heads are doubtful.
type AgentRevoked struct {
	Index uint64 `json:"index"`
	Since uint64 `json:"since"`
}

// Status reads the newest snapshot.
func (s *Server) Status(context.Context) (st Status, err error) {
	log, cosigner := s.Vkeys()
	st = Status{Origin: s.origin, Log: log.String(), Cosigner: cosigner.String(), HeadFile: s.o.HeadFile}
	st.Queued, st.Commits, st.Requests = len(s.seq.queue), s.seq.commits.Load(), s.seq.writes.Load()
	st.Audit, st.Cosigned = s.audit.last(), s.cosignStatus()
	if err := s.Ready(); err != nil {
		st.Unhealthy = err.Error()
	}
	err = s.read(func(p published) error {
		cp, _, err := tlog.ParseSignedCheckpoint(p.checkpoint)
		if err != nil {
			return fmt.Errorf("%w: the newest checkpoint: %w", store.ErrDamaged, err)
		}
		st.Size, st.Root, st.Checkpoint = cp.Size, cp.Root, string(p.checkpoint)
		return s.statusOf(p, &st)
	})
	return st, err
}

func (s *Server) statusOf(p published, st *Status) (err error) {
	if st.Time, err = s.timeStatus(p); err != nil {
		return err
	}
	st.Stamped, st.StampedAt = st.Time.Size, st.Time.At
	if st.Logs, err = s.foreignStatus(p); err != nil {
		return err
	}
	return scanAgents(p, func(*originRecord) { st.Agents++ })
}

// Agents lists the enrolled origins.
func (s *Server) Agents(context.Context) (agents []Agent, err error) {
	err = s.read(func(p published) error {
		return scanAgents(p, func(rec *originRecord) {
			a := rec.agent()
			a.Conflicts += s.conflicts.pending(rec.Origin)
			agents = append(agents, a)
		})
	})
	return agents, err
}

func (r *originRecord) agent() Agent {
	a := Agent{Origin: r.Origin, Key: r.Key, KeyFrom: r.From, KeyIndex: r.Keys,
		Forks: r.Forks, Rollbacks: r.Rollbacks, Conflicts: r.Conflicts}
	if r.Revoked != nil {
		a.Revoked = &AgentRevoked{Index: r.Revoked.Index, Since: r.Revoked.Since}
	}
	if r.Head != nil {
		a.HeadSize, a.HeadRoot, a.HeadAt = r.Head.Size, r.Head.Root, r.Head.Index
		a.HeadTime = time.Unix(r.Head.Time, 0).UTC()
	}
	if r.Event != nil {
		a.State = r.Event.State
	}
	return a
}

func scanAgents(r store.Reader, fn func(*originRecord)) error {
	var bad error
	err := r.Scan(store.Origins, nil, func(_, value []byte) bool {
		rec := new(originRecord)
		if err := json.Unmarshal(value, rec); err != nil {
			bad = fmt.Errorf("%w: origin record: %w", store.ErrDamaged, err)
			return false
		}
		if rec.Key != "" {
			fn(rec)
		}
		return true
	})
	if err != nil {
		return err
	}
	return bad
}
