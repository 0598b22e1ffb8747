package witness

import (
	"fmt"
	"strings"
	"testing"
)

// The cache must not grow with the number of origins, nor with what they send.
func TestRecordCacheIsBounded(t *testing.T) {
	c := newRecordCache()
	for i := range cacheMost + 500 {
		name := fmt.Sprint(i)
		c.set(map[string]*originRecord{name: {Origin: name}})
		if c.get(name) == nil {
			t.Fatalf("the record just set, %s, is not there", name)
		}
	}
	if len(c.of) != cacheMost {
		t.Errorf("%d records, want %d", len(c.of), cacheMost)
	}
	small, big := &originRecord{Origin: "o", Head: &headRecord{}}, &originRecord{Origin: "o", Head: &headRecord{Others: strings.Repeat("x", cacheOthers+1)}}
	c.set(map[string]*originRecord{"o": small})
	c.set(map[string]*originRecord{"o": big})
	if got := c.get("o"); got != nil {
		t.Errorf("after a record too big for the cache it still gives %+v", got)
	}
	c.clear()
	if len(c.of) != 0 {
		t.Errorf("%d records after clear", len(c.of))
	}
}
