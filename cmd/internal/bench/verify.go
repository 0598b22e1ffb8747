package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store/bolt"
)

// maxVerifyKiB is the aim for the memory of a verification.
const maxVerifyKiB = 200_000_000 / 1024

// VerifyOptions of Verify.
type VerifyOptions struct {
	Exe      string    // tool-guardian itself
	Dir      string    // where temporary folders are made, with 3 KB for each receipt; empty: the system's
	Receipts int       // how many
	Progress *Progress // nil: silent
}

// VerifyReport tells what it costs to verify a chain.
type VerifyReport struct {
	Machine   Machine `json:"machine"`
	Receipts  uint64  `json:"receipts"`
	Bytes     int64   `json:"bytes"` // of all lines
	Verdict   string  `json:"verdict"`
	Seconds   float64 `json:"seconds"` // of the whole process
	PerSecond float64 `json:"perSecond"`
	PeakKiB   int64   `json:"peakKiB"` // zero where it cannot be read

	// PurePerSecond: one SHA-256 and one Ed25519 verification for each of a sample of
	// the same receipts, on all cores.
	PurePerSecond float64 `json:"purePerSecond"`
	TimesPure     float64 `json:"timesPure"` // how many times the pure cost the verification takes
	Aims          []Aim   `json:"aims"`
}

// Verify measures `tool-guardian verify` on a generated chain against a
// witness that has its head, time included.
func Verify(ctx context.Context, o VerifyOptions) (r VerifyReport, err error) {
	if err := positive("receipts", o.Receipts); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(o.Dir, "tool-guardian-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	e, err := generate(ctx, dir, o.Receipts, o.Progress)
	if err != nil {
		return r, err
	}
	p, err := readSample(e.dir, sampleSize)
	if err != nil {
		return r, err
	}
	o.Progress.step("verifying", 0, 1)
	run, err := verifyBeside(ctx, o.Exe, e, p)
	if err != nil {
		return r, err
	}
	r = VerifyReport{
		Machine: thisMachine(), Receipts: e.size, Bytes: p.bytes, Verdict: run.verdict,
		Seconds: round(run.took.Seconds()), PerSecond: round(float64(e.size) / run.took.Seconds()),
		PeakKiB: run.peakKiB, PurePerSecond: p.perSecond(),
	}
	r.TimesPure = round(ratio(r.PurePerSecond, r.PerSecond))
	if r.PeakKiB > 0 {
		r.Aims = []Aim{atMost("peak memory of the verification", float64(r.PeakKiB), maxVerifyKiB, "KiB")}
	}
	return r, nil
}

// verifyBeside runs the verification between two runs of the pure cost.
func verifyBeside(ctx context.Context, exe string, e evidence, p *pure) (run verifyRun, err error) {
	o := witness.Options{Dir: e.dir + "-witness", Engine: bolt.OpenDir, StampEvery: time.Hour}
	if err := newWitness(ctx, o, e.vkey); err != nil {
		return run, err
	}
	err = withWitness(o, func(s *witness.Server, url string) error {
		if err := e.show(ctx, s); err != nil {
			return err
		}
		if err := p.run(); err != nil {
			return err
		}
		run, err = verifyCommand(ctx, exe, e, s, url, filepath.Join(o.Dir, "tsa", "root.pem"))
		return errors.Join(err, p.run())
	})
	return run, err
}

// show brings the chain's head to the witness and has it timestamped.
func (e evidence) show(ctx context.Context, s *witness.Server) error {
	if _, err := s.AddCheckpoint(ctx, api.AddRequest{Head: e.head}.Bytes()); err != nil {
		return err
	}
	return s.Stamp(ctx)
}

// verifyRun is what a verify process did.
type verifyRun struct {
	verdict string
	took    time.Duration
	peakKiB int64
}

// verifyCommand runs `verify` as an auditor would and watches its memory.
func verifyCommand(ctx context.Context, exe string, e evidence, s *witness.Server, url, root string) (v verifyRun, err error) {
	log, cosigner := s.Vkeys()
	cmd := exec.CommandContext(ctx, exe, "verify", e.dir, "--json", "--against", url, "--witness-key", log.String(),
		"--witness-key", cosigner.String(), "--chain-key", e.vkey, "--tsa-ca", root)
	cmd.Env = environ(os.Environ())
	var out bytes.Buffer
	said := &tail{}
	cmd.Stdout, cmd.Stderr = &out, said
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return v, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	v.peakKiB, err = watchMemory(cmd.Process.Pid, ended)
	v.took = time.Since(begin)
	if v.verdict, err = e.passed(out.Bytes(), err); err != nil {
		return v, fmt.Errorf("verify: %w; its last words: %s", err, said)
	}
	return v, nil
}

// passed reads the verdict. What was generated must pass, all of it.
func (e evidence) passed(report []byte, exit error) (verdict string, err error) {
	var r struct {
		Verdict  string
		Receipts uint64
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return "", errors.Join(exit, err)
	}
	if exit != nil || r.Verdict != "PASS" || r.Receipts != e.size {
		return r.Verdict, errors.Join(exit, fmt.Errorf("of %d generated receipts it says %s of %d", e.size, r.Verdict, r.Receipts))
	}
	return r.Verdict, nil
}

// watchMemory looks at a process until it ends and returns its peak. What it
// takes in its very last moment is not seen: an ended process has no memory
// to ask for.
func watchMemory(pid int, ended <-chan error) (peakKiB int64, err error) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case err := <-ended:
			return peakKiB, err
		case <-look.C:
			if _, peak, err := memory(pid); err == nil {
				peakKiB = max(peakKiB, peak)
			}
		}
	}
}
