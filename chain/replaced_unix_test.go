//go:build unix

package chain

import (
	"os"
	"testing"
)

// A segment that is put aside and replaced under a running router, as a restore
// or a synchroniser does it: what is acknowledged afterwards lies in the file
// that others read.
func TestSegmentReplacedUnderAWriter(t *testing.T) {
	for name, put := range map[string]func(segment string) error{
		"moved aside": func(segment string) error { return os.Rename(segment, segment+".aside") },
		"linked and removed": func(segment string) error {
			if err := os.Link(segment, segment+".aside"); err != nil {
				return err
			}
			return os.Remove(segment)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, acked := grown(t, 3)
			c := openAt(t, o)
			acked = append(acked, mustAppend(t, c, decision(3)))
			segment := at(o).segment(0)
			was := read(t, segment)
			if err := put(segment); err != nil {
				t.Fatal(err)
			}
			write(t, segment, was)
			acked = append(acked, mustAppend(t, c, decision(4)))
			if n := checkChain(t, OS(), o.Dir, acked); n != 6 {
				t.Errorf("%d lines in the segment's place, want 6", n)
			}
		})
	}
}
