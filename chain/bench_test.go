package chain

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"toolguardian/receipts"
)

// BenchmarkAppend sets a durable append beside the bare write and fdatasync
// of a line of the same length, in the same run. With one caller the ratio is
// what the chain adds; with 16 it shows the sharing of syncs.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			raw := rawSync(b, 1200, 200)
			c := openAt(b, Options{Dir: filepath.Join(b.TempDir(), "evidence")})
			b.ResetTimer()
			each(b, callers, func(i int) { mustAppend(b, c, decision(i)) })
			per := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(float64(raw.Nanoseconds()), "rawsync-ns")
			b.ReportMetric(per/float64(raw.Nanoseconds()), "x-raw")
		})
	}
}

// BenchmarkAppendNoDisk is the processor's share: files in memory.
func BenchmarkAppendNoDisk(b *testing.B) {
	for _, callers := range []int{1, 16} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			dir := memoryDir(b)
			c := openAt(b, Options{Dir: dir})
			b.ReportAllocs()
			b.ResetTimer()
			each(b, callers, func(i int) { mustAppend(b, c, decision(i)) })
		})
	}
}

// BenchmarkSeal is what signing alone costs of BenchmarkAppendNoDisk.
func BenchmarkSeal(b *testing.B) {
	keys, err := newKeyPair()
	if err != nil {
		b.Fatal(err)
	}
	link := receipts.Link{Origin: originOf(defaultLabel, publicOf(keys.head)), Seq: 7}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := receipts.Seal(decision(i), link, keys.receipt); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a chain of the given length.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("lines=%d", n), func(b *testing.B) {
			o := Options{Dir: memoryDir(b)}
			grow(b, o, n)
			for b.Loop() {
				c, err := Open(b.Context(), o)
				if err != nil {
					b.Fatal(err)
				}
				if err := c.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// grow appends without waiting for each line's sync.
func grow(tb testing.TB, o Options, n int) {
	tb.Helper()
	c, err := Open(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; i < n; i += 256 {
		if err := c.enter(tb.Context()); err != nil {
			tb.Fatal(err)
		}
		for j := range min(256, n-i) {
			if _, err := c.put(decision(i + j)); err != nil {
				tb.Fatal(err)
			}
		}
		if err := c.syncAll(); err != nil {
			tb.Fatal(err)
		}
		c.leave()
	}
	if err := c.Close(); err != nil {
		tb.Fatal(err)
	}
}

func each(b *testing.B, callers int, f func(int)) {
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			for i := g; i < b.N; i += callers {
				f(i)
			}
		})
	}
	wg.Wait()
}

func rawSync(b *testing.B, size, n int) time.Duration {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, size)
	began := time.Now()
	for range n {
		if _, err := f.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := syncFile(f); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began) / time.Duration(n)
}

// memoryDir is a folder in memory where the machine has one.
func memoryDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "chain")
	if err != nil {
		tb.Skipf("no file system in memory: %v", err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "evidence")
}
