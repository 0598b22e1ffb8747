package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
)

// benchLogs measures tessera's POSIX driver and our witness on the same disk,
// in turns.
func benchLogs(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	exe := flags.String("witness", "tool-guardian", "the tool-guardian binary")
	parent := flags.String("dir", "", "where the temporary folder is made: measure the disk that matters")
	turn := flags.Duration("turn", 2*time.Second, "how long each turn lasts")
	turns := flags.Int("turns", 3, "turns of each side")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(*parent, "interop-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("tessera: POSIX driver, in process, entries of 700 bytes, batch 64 / 1 ms, no antispam, until the entry has its index in the integrated tree")
	fmt.Println("witness: the binary over HTTP on loopback: one HTTP request, one signature checked and one made for each head, answered when the head and a signed checkpoint are durable; the time includes what the client signs and proves")
	for _, writers := range []int{1, 64} {
		if err := compare(ctx, dir, *exe, writers, *turns, *turn); err != nil {
			return err
		}
	}
	return nil
}

func compare(ctx context.Context, dir, exe string, writers, turns int, turn time.Duration) error {
	theirs, stop, err := newTessera(ctx, filepath.Join(dir, fmt.Sprint("tessera", writers)))
	if err != nil {
		return err
	}
	defer stop()
	ours, err := startOurs(ctx, exe, filepath.Join(dir, fmt.Sprint("witness", writers)), writers)
	if err != nil {
		return err
	}
	defer ours.stop()
	var a, b figures
	for range turns {
		if err := errors.Join(a.run(writers, turn, theirs), b.run(writers, turn, ours.send)); err != nil {
			return err
		}
	}
	fmt.Printf("writers %d: tessera %s; witness %s; witness/tessera %.2f\n", writers, &a, &b, b.perSecond()/a.perSecond())
	return nil
}

// figures are the latencies of one side over its turns.
type figures struct {
	took []time.Duration
	wall time.Duration
}

func (f *figures) run(writers int, turn time.Duration, do func(writer int) error) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	begin := time.Now()
	for w := range writers {
		wg.Go(func() {
			var mine []time.Duration
			var err error
			for err == nil && time.Since(begin) < turn {
				start := time.Now()
				err = do(w)
				mine = append(mine, time.Since(start))
			}
			mu.Lock()
			defer mu.Unlock()
			f.took, failed = append(f.took, mine...), errors.Join(failed, err)
		})
	}
	wg.Wait()
	f.wall += time.Since(begin)
	return failed
}

func (f *figures) perSecond() float64 { return float64(len(f.took)) / f.wall.Seconds() }

func (f *figures) String() string {
	slices.Sort(f.took)
	n := len(f.took)
	return fmt.Sprintf("%.0f/s (p50 %v, p99 %v)", f.perSecond(), f.took[n/2].Round(10*time.Microsecond), f.took[n*99/100].Round(10*time.Microsecond))
}

// newTessera is a new log of tessera's POSIX driver, and its Add.
func newTessera(ctx context.Context, dir string) (add func(int) error, stop func(), err error) {
	skey, _, err := note.GenerateKey(rand.Reader, "tessera.invalid/log")
	if err != nil {
		return nil, nil, err
	}
	signer, err := note.NewSigner(skey)
	if err != nil {
		return nil, nil, err
	}
	driver, err := posix.New(ctx, posix.Config{Path: dir})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	appender, shutdown, _, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).WithBatching(64, time.Millisecond))
	if err != nil {
		cancel()
		return nil, nil, err
	}
	add = func(int) error {
		entry := make([]byte, 700)
		rand.Read(entry)
		_, err := appender.Add(ctx, tessera.NewEntry(entry))()
		return err
	}
	return add, func() { shutdown(ctx); cancel() }, nil
}

// ours is a witness process and the chains that send to it.
type ours struct {
	cmd    *exec.Cmd
	url    string
	client *http.Client
	chains []*chain
}

func startOurs(ctx context.Context, exe, dir string, writers int) (*ours, error) {
	o := &ours{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: writers}}}
	if out, err := exec.CommandContext(ctx, exe, "witness", "init", "--data", dir, "--origin", "bench.invalid/log").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("witness init: %w: %s", err, out)
	}
	for range writers {
		c, err := newChain()
		if err != nil {
			return nil, err
		}
		o.chains = append(o.chains, c)
		if out, err := exec.CommandContext(ctx, exe, "witness", "agents", "add", "--data", dir, c.vkey).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("witness agents add: %w: %s", err, out)
		}
	}
	at := dir + ".url"
	o.cmd = exec.CommandContext(ctx, exe, "witness", "serve", "--data", dir, "--head-file", dir+".head",
		"--listen", "127.0.0.1:0", "--addr-file", at, "--rate", "-1", "--stamp-every", "1h")
	if err := o.cmd.Start(); err != nil {
		return nil, err
	}
	url, err := awaitFile(at, 20*time.Second)
	if err != nil {
		o.stop()
		return nil, err
	}
	o.url = strings.TrimSpace(url)
	return o, nil
}

func awaitFile(path string, most time.Duration) (string, error) {
	for begin := time.Now(); ; {
		b, err := os.ReadFile(path)
		if len(b) > 0 || time.Since(begin) > most {
			return string(b), err
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (o *ours) stop() {
	o.client.CloseIdleConnections()
	o.cmd.Process.Signal(os.Interrupt)
	o.cmd.Wait()
}

func (o *ours) send(writer int) error {
	body, err := o.chains[writer].next()
	if err != nil {
		return err
	}
	resp, err := o.client.Post(o.url+"/add-checkpoint", "text/plain", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("the witness answered %s: %.200s", resp.Status, answer)
	}
	return err
}
