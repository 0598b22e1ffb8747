package witness_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store/bolt"
)

// killedDir names the folder that this binary serves when it is started as a
// witness, to be killed.
const killedDir = "WITNESS_TEST_SERVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedDir); dir != "" {
		if err := serveUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func serveUntilKilled(dir string) error {
	s, err := witness.New(killedOptions(dir))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	go http.Serve(l, s.Handler())
	return s.Run(context.Background())
}

func killedOptions(dir string) witness.Options {
	return witness.Options{Dir: dir, Engine: bolt.OpenDir, HeadFile: dir + ".head", StampEvery: 20 * time.Millisecond, RatePerSecond: -1}
}

// victim is a real witness process.
type victim struct {
	cmd    *exec.Cmd
	client *api.Client
}

func startVictim(t *testing.T, dir string) *victim {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cmd.Process.Kill()
		t.Fatalf("the witness did not start: %v, %v", err, cmd.Wait())
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &victim{cmd: cmd, client: api.New(strings.TrimSpace(url), &http.Client{Transport: transport})}
}

func (v *victim) kill(t *testing.T) {
	t.Helper()
	if err := v.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	v.cmd.Wait() // says "killed"
}

// submitter sends the heads of one chain, one after the other, over all lives
// of the witness.
type submitter struct {
	a     *agent
	from  int64 // size that the witness is believed to have
	acked int64 // largest size that it acknowledged
	index uint64
}

// run sends heads until the witness dies.
func (s *submitter) run(t *testing.T, c *api.Client) {
	for {
		to := min(s.from+1, s.a.size)
		added, err := c.AddCheckpoint(context.Background(), uint64(s.from), s.a.proof(s.from, to), s.a.head(to))
		var conflict api.ErrConflict
		switch {
		case err == nil:
			s.from, s.acked, s.index = to, to, added.Index
		case errors.As(err, &conflict):
			if int64(conflict.Size) < s.acked {
				t.Errorf("LOST: size %d of %s was acknowledged, the witness is at %d", s.acked, s.a.origin(), conflict.Size)
				return
			}
			s.from = int64(conflict.Size)
		default:
			return // killed in the middle: whether it landed is unknown
		}
	}
}

// kill -9 of a real witness at random moments under 64 writers: nothing that
// was acknowledged is lost, an outsider sees one growing log, and the store is
// whole in the end.
func TestKillNine(t *testing.T) {
	rounds, agents := 200, 64
	if testing.Short() {
		rounds = 20
	}
	dir := filepath.Join(t.TempDir(), "witness")
	if err := witness.Init(dir, logName, bolt.OpenDir); err != nil {
		t.Fatal(err)
	}
	writers, log := enrolOffline(t, dir, agents)
	m := newMonitor(t, log)
	for round := range rounds {
		v := startVictim(t, dir)
		m.follow(v.client)
		checkSubmitters(t, m, writers)
		if t.Failed() {
			v.kill(t)
			t.Fatalf("round %d", round)
		}
		var wg sync.WaitGroup
		for _, w := range writers {
			wg.Go(func() { w.run(t, v.client) })
		}
		<-time.After(rand.N(120 * time.Millisecond)) // the moment of the kill
		v.kill(t)
		wg.Wait()
	}
	total := int64(0)
	for _, w := range writers {
		total += w.acked
	}
	t.Logf("%d heads acknowledged over %d lives", total, rounds)
	if total < int64(rounds) {
		t.Errorf("only %d heads were acknowledged: the kills came before any work", total)
	}
	checkWhole(t, dir)
}

func enrolOffline(t *testing.T, dir string, n int) (writers []*submitter, log tlog.Vkey) {
	t.Helper()
	op := operate(t, killedOptions(dir))
	defer op.Close()
	for range n {
		a := newAgent(t).grow(5000, "")
		if _, err := op.AddAgent(context.Background(), a.signer.Vkey().String()); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, &submitter{a: a})
	}
	st, err := op.Status(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return writers, parseVkey(t, st.Log)
}

// checkSubmitters finds every acknowledged head at its index.
func checkSubmitters(t *testing.T, m *monitor, writers []*submitter) {
	t.Helper()
	for _, w := range writers {
		if w.acked == 0 {
			continue
		}
		if w.index >= uint64(len(m.entries)) {
			t.Errorf("LOST: leaf %d was acknowledged, the log has %d", w.index, len(m.entries))
			continue
		}
		l, err := api.ParseLeaf(m.entries[w.index])
		want := w.a.checkpoint(w.acked).Text()
		if err != nil || l.Origin != w.a.origin() || !strings.HasPrefix(string(l.Body), string(want)) {
			t.Errorf("LOST: leaf %d is not the acknowledged head of size %d: %v", w.index, w.acked, err)
		}
	}
}

func checkWhole(t *testing.T, dir string) {
	t.Helper()
	op := operate(t, killedOptions(dir))
	defer op.Close()
	report, err := op.Fsck(context.Background())
	if err != nil || !report.OK() {
		t.Errorf("fsck: %v\n%s", err, faultsOf(report))
	}
}
