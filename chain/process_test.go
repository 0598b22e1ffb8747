package chain

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"toolguardian/receipts"
)

// The test binary run again with these is a process that appends.
const (
	envDir     = "CHAIN_TEST_DIR"
	envCallers = "CHAIN_TEST_CALLERS"
	envCount   = "CHAIN_TEST_COUNT" // by each caller; 0 = until killed
)

func TestMain(m *testing.M) {
	if os.Getenv(envDir) == "" {
		os.Exit(m.Run())
	}
	if err := appendProcess(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// appendProcess writes a line for each acknowledged receipt once it is.
func appendProcess(out io.Writer) error {
	callers, _ := strconv.Atoi(os.Getenv(envCallers))
	count, _ := strconv.Atoi(os.Getenv(envCount))
	o := Options{Dir: os.Getenv(envDir), SegmentSize: 300_000, LockTimeout: 20 * time.Second}
	c, err := Open(context.Background(), o)
	if err != nil {
		return err
	}
	failures := make(chan error, callers)
	var mu sync.Mutex
	for range callers {
		go func() {
			for i := 0; count == 0 || i < count; i++ {
				pos, err := c.Append(context.Background(), decision(i))
				if err != nil {
					failures <- err
					return
				}
				mu.Lock()
				fmt.Fprintf(out, "%d %x %s\n", pos.Seq, pos.LeafHash, pos.Origin)
				mu.Unlock()
			}
			failures <- nil
		}()
	}
	for range callers {
		if err := <-failures; err != nil {
			return err
		}
	}
	return c.Close()
}

// helper is a running process and what it acknowledged.
type helper struct {
	cmd    *exec.Cmd
	first  chan struct{} // closed at the first acknowledgement
	done   chan struct{}
	acked  []receipts.Position
	stderr strings.Builder
}

func startHelper(t *testing.T, dir string, callers, count int) *helper {
	t.Helper()
	h := &helper{cmd: exec.Command(os.Args[0]), first: make(chan struct{}), done: make(chan struct{})}
	h.cmd.Env = append(os.Environ(), envDir+"="+dir, envCallers+"="+strconv.Itoa(callers), envCount+"="+strconv.Itoa(count))
	h.cmd.Stderr = &h.stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go h.read(out)
	return h
}

func (h *helper) read(out io.Reader) {
	defer close(h.done)
	lines := bufio.NewReader(out)
	for n := 0; ; n++ {
		line, err := lines.ReadString('\n')
		if err != nil {
			if n == 0 {
				close(h.first)
			}
			return // what was cut off in the pipe was not told
		}
		var seq uint64
		var leaf, origin string
		if _, err := fmt.Sscan(line, &seq, &leaf, &origin); err != nil {
			continue
		}
		pos := receipts.Position{Seq: seq, Origin: origin}
		hex.Decode(pos.LeafHash[:], []byte(leaf))
		h.acked = append(h.acked, pos)
		if n == 0 {
			close(h.first)
		}
	}
}

// TestProcessesShareOneChain: four processes, one linear chain (E24, T5).
func TestProcessesShareOneChain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "evidence")
	const processes, callers, each = 4, 4, 40
	var helpers []*helper
	for range processes {
		helpers = append(helpers, startHelper(t, dir, callers, each))
	}
	var acked []receipts.Position
	for _, h := range helpers {
		<-h.done
		if err := h.cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, h.stderr.String())
		}
		acked = append(acked, h.acked...)
	}
	if len(acked) != processes*callers*each {
		t.Fatalf("%d receipts acknowledged, want %d", len(acked), processes*callers*each)
	}
	if n := checkChain(t, OS(), dir, acked); n != uint64(len(acked))+1 {
		t.Errorf("%d lines for %d receipts and a genesis", n, len(acked))
	}
}

// TestKill kills two processes of 16 callers each at random moments, again
// and again on the same chain: what they were told is durable is there.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills 100 rounds of processes")
	}
	const chains, rounds = 10, 10
	total := 0
	for range chains {
		dir := filepath.Join(t.TempDir(), "evidence")
		var acked []receipts.Position
		for range rounds {
			acked = append(acked, killRound(t, dir)...)
			if err := stillLinked(layout{OS(), dir}, acked); err != nil {
				t.Fatal(err)
			}
		}
		c := openAt(t, Options{Dir: dir})
		if p, ok := c.Predecessor(); ok {
			t.Fatalf("called tampering: %s", p.Reason)
		}
		checkChain(t, OS(), dir, acked)
		total += len(acked)
	}
	t.Logf("%d rounds, %d receipts acknowledged", chains*rounds, total)
}

func killRound(t *testing.T, dir string) []receipts.Position {
	t.Helper()
	helpers := []*helper{startHelper(t, dir, 16, 0), startHelper(t, dir, 16, 0)}
	var acked []receipts.Position
	for _, h := range helpers {
		<-h.first
		timer := time.NewTimer(rand.N(20 * time.Millisecond))
		<-timer.C
		if err := h.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-h.done
		h.cmd.Wait()
		if h.stderr.Len() > 0 {
			t.Fatal(h.stderr.String())
		}
		acked = append(acked, h.acked...)
	}
	return acked
}

// stillLinked looks for the acknowledged lines without checking all
// signatures again.
func stillLinked(l layout, acked []receipts.Position) error {
	f, err := l.load()
	if err != nil || f.damage != nil {
		return fmt.Errorf("load: %v %v", err, f)
	}
	for _, a := range acked {
		leaf, err := f.tree.leaf(a.Seq)
		if err != nil || leaf != a.LeafHash || a.Origin != f.place.origin {
			return fmt.Errorf("acknowledged receipt %d is not in the chain of %d: %v", a.Seq, f.place.seq, err)
		}
	}
	return nil
}
