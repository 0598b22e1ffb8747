package witness

import (
	"context"
	"fmt"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// Event judges the body of POST /event and gives the index of the chain's
// newest event leaf. A note that changes neither state nor interval is
// answered, not logged.
func (s *Server) Event(ctx context.Context, body []byte) (uint64, error) {
	e, note, err := api.ParseEvent(body)
	if err != nil {
		return 0, asBadRequest(err)
	}
	if e.Log != s.origin {
		return 0, fmt.Errorf("%w: the event is for the log %.255q, this is %q", api.ErrBadRequest, e.Log, s.origin)
	}
	rec, err := s.readOrigin(e.Origin)
	if err != nil {
		return 0, err
	}
	body, err = s.noteByKey(rec, note)
	if err != nil {
		return 0, err
	}
	done, err := submit(ctx, s.seq, func(b *batch) (accepted[uint64], error) { return b.event(e, rec.Keys, body) })
	return done.value, err
}

// noteByKey is the note with the one line by the key in force, once that
// verifies and the origin has not sent too much.
func (s *Server) noteByKey(rec *originRecord, note tlog.Note) ([]byte, error) {
	if err := rec.mayWrite(); err != nil {
		return nil, err
	}
	key, err := tlog.ParseVkey(rec.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: the key of %s: %w", store.ErrDamaged, rec.Origin, err)
	}
	line, err := note.Verify(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrForbidden, err)
	}
	if err := s.limits.take(rec.Origin, s.o.Now()); err != nil {
		return nil, err
	}
	return tlog.Note{Text: note.Text, Signatures: []tlog.Signature{line}}.Bytes(), nil
}

// recordUnder is the record of an origin whose newest key leaf is still keys.
func (b *batch) recordUnder(origin string, keys uint64) (*originRecord, error) {
	rec, err := b.record(origin)
	if err == nil && rec.Keys != keys {
		return nil, fmt.Errorf("%w: the key of %s was changed meanwhile", api.ErrForbidden, origin)
	}
	return rec, err
}

// event refuses a note that does not know of this origin's last event: an old
// one, played again, would undo a change of state.
func (b *batch) event(e api.Event, keys uint64, body []byte) (accepted[uint64], error) {
	rec, err := b.recordUnder(e.Origin, keys)
	if err != nil {
		return accepted[uint64]{}, err
	}
	if ev := rec.Event; ev != nil && ev.State == e.State && ev.Heartbeat == e.Heartbeat {
		return accepted[uint64]{ev.Index}, nil
	}
	if e.After < rec.lastEvent() || e.After > rec.Prev {
		return accepted[uint64]{}, fmt.Errorf("%w: after %d: the newest event is leaf %d, the newest leaf %d",
			api.ErrUnprocessable, e.After, rec.lastEvent(), rec.Prev)
	}
	index, err := b.append(api.Leaf{Type: api.LeafEvent, Origin: e.Origin, Prev: api.At(rec.Prev), Keys: api.At(rec.Keys), Body: body})
	if err != nil {
		return accepted[uint64]{}, err
	}
	rec.Prev = index
	rec.Event = &eventRecord{Index: index, State: e.State, Heartbeat: e.Heartbeat}
	b.keep(rec)
	return accepted[uint64]{index}, nil
}
