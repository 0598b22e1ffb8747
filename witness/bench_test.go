package witness_test

import (
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toolguardian/chain/tlog"
)

// benchAgents are chains whose heads are signed, and their proofs made, before
// the clock runs.
type benchAgents [][][]byte

func presigned(b *testing.B, r *rig, agents, heads int) benchAgents {
	b.Helper()
	out := make(benchAgents, agents)
	for i := range out {
		a := r.enrolled().grow(heads, "")
		for n := range int64(heads) {
			out[i] = append(out[i], a.body(n, n+1))
		}
	}
	return out
}

// run sends every chain's heads in its own goroutine and gives the latencies.
func (bodies benchAgents) run(b *testing.B, r *rig) (all []time.Duration, took time.Duration) {
	b.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	begin := time.Now()
	for _, heads := range bodies {
		wg.Go(func() {
			var mine []time.Duration
			for _, body := range heads {
				start := time.Now()
				if _, err := r.server.AddCheckpoint(context.Background(), body); err != nil {
					b.Error(err)
					return
				}
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
		})
	}
	wg.Wait()
	took = time.Since(begin)
	slices.Sort(all)
	return all, took
}

// BenchmarkWriters64 is the figure: heads a second by 64 writers in
// process, beside what the disk and the CPU can do on the same machine in the
// same run. The aim is min(5 × raw flushes, half of 2 / (verify + sign)).
func BenchmarkWriters64(b *testing.B) {
	flush, crypto := rawFlush(b), verifyAndSign(b)
	for range b.N {
		r := newRig(b)
		bodies := presigned(b, r, 64, 200)
		before := cpuTime(b)
		all, took := bodies.run(b, r)
		perHead := (cpuTime(b) - before) / time.Duration(len(all))
		b.ReportMetric(float64(perHead.Microseconds()), "cpu-us/head")
		perSecond := float64(len(all)) / took.Seconds()
		aim := min(5/flush.Seconds(), 1/crypto.Seconds())
		b.ReportMetric(perSecond, "heads/s")
		b.ReportMetric(aim, "aim/s")
		b.ReportMetric(perSecond/aim, "of-aim")
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
		b.ReportMetric(float64(flush.Microseconds()), "flush-us")
		b.ReportMetric(float64(crypto.Microseconds()), "verify+sign-us")
	}
}

// BenchmarkWriters1 has one writer; the aim is p50 ≤ 2 raw flushes + 250 µs.
func BenchmarkWriters1(b *testing.B) {
	flush := rawFlush(b)
	for range b.N {
		r := newRig(b)
		all, _ := presigned(b, r, 1, 3000).run(b, r)
		aim := 2*flush + 250*time.Microsecond
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
		b.ReportMetric(float64(aim.Microseconds()), "aim-us")
		b.ReportMetric(float64(flush.Microseconds()), "flush-us")
	}
}

// cpuTime is what this process has used of all cores: it tells our cost on a
// machine that others use too.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// rawFlush is the median of 4 KiB write + fdatasync into a file that has its
// room already.
func rawFlush(b *testing.B) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	const rounds = 200
	page := make([]byte, 4096)
	if _, err := f.Write(make([]byte, rounds*len(page))); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for i := range int64(rounds) {
		page[0] = byte(i) + 1
		start := time.Now()
		if _, err := f.WriteAt(page, i*int64(len(page))); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// verifyAndSign is what one head costs in Ed25519 alone.
func verifyAndSign(b *testing.B) time.Duration {
	b.Helper()
	priv, err := tlog.GenerateKey()
	if err != nil {
		b.Fatal(err)
	}
	pub := priv.Public().(ed25519.PublicKey)
	msg := make([]byte, 200)
	sig := ed25519.Sign(priv, msg)
	var good atomic.Int64
	const rounds = 2000
	start := time.Now()
	for range rounds {
		if ed25519.Verify(pub, msg, sig) {
			good.Add(1)
		}
		sig = ed25519.Sign(priv, msg)
	}
	took := time.Since(start)
	if good.Load() != rounds {
		b.Fatal("a good signature did not verify")
	}
	return took / rounds
}
