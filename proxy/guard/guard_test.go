package guard

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gowebpki/jcs"
)

// run makes the same call with the given results and returns what the guard
// said: a number for a notice, x for a stop, . for neither.
func run(l *Loops, k Key, results ...string) (said string) {
	for _, r := range results {
		if l.Stops(k) {
			said += "x"
		} else if n := l.Ran(k, []byte(r)); n > 0 {
			said += fmt.Sprint(n)
		} else {
			said += "."
		}
	}
	return said
}

func TestLoops(t *testing.T) {
	for name, tt := range map[string]struct {
		results []string
		want    string
	}{
		"the same result":           {[]string{"a", "a", "a", "a", "a", "a"}, "..34xx"},
		"a changing result":         {[]string{"1", "2", "3", "4", "5", "6"}, "......"},
		"a poll that sees the end":  {[]string{"r", "r", "r", "r2", "r2", "done", "done"}, "..3...."},
		"there and back":            {[]string{"a", "b", "a", "b", "a", "b", "a"}, "......."},
		"changes before the notice": {[]string{"a", "a", "b", "b", "b", "b", "b"}, "....34x"},
	} {
		l := NewLoops(time.Now)
		if got := run(l, l.Key("s", "t", []byte(`{}`)), tt.results...); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestOldResultsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLoops(time.Now)
		k := l.Key("s", "t", nil)
		if got := run(l, k, "a", "a", "a", "a", "a"); got != "..34x" {
			t.Fatal(got)
		}
		time.Sleep(forget)
		if got := run(l, k, "a"); got != "x" {
			t.Errorf("at ten minutes: %q", got)
		}
		time.Sleep(time.Nanosecond)
		if got := run(l, k, "a", "a", "a"); got != "..3" {
			t.Errorf("after ten minutes: %q", got)
		}
	})
}

func TestTwentyCallsAreRemembered(t *testing.T) {
	for between, want := range map[int]string{remember - 4: "x", remember - 3: "3", remember: "."} {
		l := NewLoops(time.Now)
		k := l.Key("s", "t", nil)
		run(l, k, "a", "a", "a", "a")
		for i := range between {
			run(l, l.Key("s", fmt.Sprint(i), nil), "a")
		}
		if got := run(l, k, "a"); got != want {
			t.Errorf("%d calls between: %q, want %q", between, got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	l := NewLoops(time.Now)
	for _, same := range [][2]string{
		{`{"a":1,"b":[2,"x"]}`, `{ "b": [2.0, "\u0078"], "a": 1 }`},
		{`{"a":0.1}`, `{"a":0.10}`},
	} {
		if l.Key("s", "t", []byte(same[0])) != l.Key("s", "t", []byte(same[1])) {
			t.Errorf("%s and %s differ", same[0], same[1])
		}
	}
	for _, other := range [][2]string{
		{`{"a":1}`, `{"a":"1"}`}, {`{"a":[1,2]}`, `{"a":[2,1]}`},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`}, {`{"a":1e400}`, `{"a":1e401}`},
		{`{"a":0.30000000000000004}`, `{"a":0.30000000000000005}`}, {`{"a":"\ud800"}`, `{"a":"\ud801"}`},
	} {
		if l.Key("s", "t", []byte(other[0])) == l.Key("s", "t", []byte(other[1])) {
			t.Errorf("%s and %s are the same", other[0], other[1])
		}
	}
	if l.Key("s", "t", nil) == l.Key("s", "u", nil) || l.Key("s", "t", nil) == l.Key("r", "t", nil) {
		t.Error("the tool or the server does not count")
	}
}

func TestListed(t *testing.T) {
	list := []string{"poller", "jobs.status", "ci.wait_*", "tail*"}
	for name, want := range map[[2]string]bool{
		{"poller", "x"}: true, {"jobs", "status"}: true, {"jobs", "start"}: false, {"ci", "wait_for"}: true,
		{"ci", "run"}: false, {"any", "tail_log"}: true, {"poller2", "x"}: false,
	} {
		if got := Listed(list, name[0], name[1]); got != want {
			t.Errorf("%v: %v", name, got)
		}
	}
	if Listed(nil, "s", "t") {
		t.Error("on an empty list")
	}
}

func looks(l *Looks, n int) (said string) {
	for range n {
		v, _ := l.Look()
		said += string(".nx"[v])
	}
	return said
}

func TestLooks(t *testing.T) {
	for limit, want := range map[int]string{DefaultLimit: ".......nnnnxx", 3: ".nxxxxxxxxxxx", 1: "xxxxxxxxxxxxx", 0: ".............", -1: "............."} {
		if got := looks(NewLooks(limit), 13); got != want {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	l := NewLooks(DefaultLimit)
	looks(l, 20)
	l.Called()
	if got := looks(l, 8); got != ".......n" {
		t.Errorf("after a call: %q", got)
	}
}

func FuzzKey(f *testing.F) {
	f.Add([]byte(`{"a":1.0,"b":"\ud800"}`), []byte(`{"b":"x","a":1}`))
	f.Add([]byte(`{`), []byte(`{"a":1e999999}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		l := NewLoops(time.Now)
		if first, again := l.Key("s", "t", a), l.Key("s", "t", bytes.Clone(a)); first != again {
			t.Fatal("a call is not itself")
		}
		ca, errA := jcs.Transform(a)
		cb, errB := jcs.Transform(b)
		if same := l.Key("s", "t", a) == l.Key("s", "t", b); same && errA == nil && errB == nil && !bytes.Equal(ca, cb) {
			t.Fatalf("%q and %q are the same, and have the canonical forms %q and %q", a, b, ca, cb)
		}
	})
}

func BenchmarkKey(b *testing.B) {
	l := NewLoops(time.Now)
	args := []byte(`{"path":"/some/where","limit":20}`)
	b.ReportAllocs()
	for b.Loop() {
		l.Key("s", "t", args)
	}
}
