package witness_test

import (
	"slices"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// Whatever is posted, the answer is a status of the page, and only a 200 may
// change the log.
func FuzzPost(f *testing.F) {
	r := newRig(f)
	a := r.enrolled().grow(9, "")
	r.add(a, 0, 3)
	f.Add("/add-checkpoint", a.body(3, 9))
	f.Add("/add-checkpoint", a.body(0, 3))
	f.Add("/add-checkpoint", newAgent(f).grow(1, "").body(0, 1))
	f.Add("/enroll", api.EnrolRequest{Note: newAgent(f).enrolNote()}.Bytes())
	f.Add("/event", signedNote(f, api.Event{Origin: a.origin(), Log: logName, State: api.StateOpen}.Text(), a.signer))
	f.Add("/add-checkpoint", signedNote(f, tlog.Checkpoint{Origin: "x", Size: 1}.Text(), a.signer))
	next := a.nextKey()
	f.Add("/key", a.rotation(next, 5, newAgent(f).signer, next))
	f.Add("/stamp", a.stamp(api.Stamp{Origin: a.origin(), Log: "elsewhere", Commitments: []tlog.Hash{{1}}}))
	f.Add("/misbehaviour", []byte(r.status().Checkpoint))
	f.Add("/misbehaviour", api.RollbackFile{A: a.head(3), B: a.head(2)}.Bytes())
	allowed := []int{200, 400, 403, 404, 409, 413, 422}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		if !slices.Contains([]string{"/add-checkpoint", "/enroll", "/event", "/key", "/stamp", "/misbehaviour"}, path) {
			return
		}
		r := r.in(t)
		before := r.status()
		w := r.post(path, body)
		if !slices.Contains(allowed, w.Code) {
			t.Errorf("%s: status %d for %q", path, w.Code, body)
		}
		if after := r.status(); w.Code != 200 && after.Checkpoint != before.Checkpoint {
			t.Errorf("%s: status %d changed the log", path, w.Code)
		}
	})
}

// Paths and queries of strangers read, or are refused; none is our failure.
func FuzzGet(f *testing.F) {
	r := newRig(f)
	r.add(r.enrolled().grow(2, ""), 0, 2)
	for _, path := range []string{"/tile/0/000.p/2", "/tile/entries/000", "/proof?index=1&size=2", "/consistency?from=1&to=2",
		"/timestamp?from=1", "/timestamp/1.note", "/timestamp/1/a.tsr", "/blob/00", "/checkpoint", "/00/checkpoint",
		"/tile/63/x999/x999/999", "/proof?index=18446744073709551615", "/consistency?from=9223372036854775807&to=9223372036854775807"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if len(path) == 0 || path[0] != '/' {
			return
		}
		if code, ok := r.tryGet(path); ok && code >= 500 {
			t.Errorf("%q: status %d", path, code)
		}
	})
}
