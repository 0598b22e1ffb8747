package witness

import "sync"

// recordCache holds the newest durable records of the origins that wrote last,
// so that judging a head neither waits for a commit under way nor reads the
// store. Only the sequencer sets it, after a commit and before its answers, and
// empties it when the store may have moved without it. A worker that reads an
// older record loses the comparison in the sequencer, no more.
type recordCache struct {
	mu sync.RWMutex
	of map[string]*originRecord // guarded by mu; the records never change
}

const (
	cacheMost   = 1 << 14 // records
	cacheOthers = 1 << 10 // bytes of foreign lines in a cached record
)

func newRecordCache() *recordCache { return &recordCache{of: map[string]*originRecord{}} }

func (c *recordCache) get(origin string) *originRecord {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.of[origin]
}

// set takes over the records. Above the bound any other one gives way.
func (c *recordCache) set(records map[string]*originRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for origin, rec := range records {
		if rec.Head != nil && len(rec.Head.Others) > cacheOthers {
			delete(c.of, origin)
			continue
		}
		c.of[origin] = rec
		for old := range c.of {
			if len(c.of) <= cacheMost {
				break
			}
			delete(c.of, old)
		}
	}
}

func (c *recordCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.of)
}
