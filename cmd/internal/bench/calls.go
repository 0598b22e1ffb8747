package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Sizes and callers of a call bench.
var (
	callPayloads = []int{16, 64 << 10} // bytes of text
	callCallers  = []int{1, 16}
)

// CallsOptions of Calls. All are required but Dir and Progress.
type CallsOptions struct {
	Exe      string        // tool-guardian itself: the router, and with `bench echo` the server
	Dir      string        // where temporary folders are made; empty: the system's
	Turns    int           // of each side, for each payload and number of callers
	Turn     time.Duration // how long one turn lasts
	Progress *Progress     // nil: silent
}

// CallsReport tells what the router and its evidence cost.
type CallsReport struct {
	Machine Machine     `json:"machine"`
	Cases   []CallCase  `json:"cases"`
	Routers []Router    `json:"routers"`
	Flush   Figure      `json:"flush"` // one block of 4 KiB made durable, in turns with the calls
	Chain   []ChainCase `json:"chain"`
	Aims    []Aim       `json:"aims"`
}

// CallCase is one payload with one number of callers, on four sides.
type CallCase struct {
	Payload int    `json:"payloadBytes"`
	Callers int    `json:"callers"`
	Direct  Figure `json:"direct"`
	Relay   Figure `json:"relay"` // through a process that only copies bytes
	Off     Figure `json:"evidenceOff"`
	On      Figure `json:"evidenceOn"`
}

// Router is a router's memory after its calls; zero where it cannot be read.
type Router struct {
	Evidence string `json:"evidence"`
	KiB      int64  `json:"kib"`
	PeakKiB  int64  `json:"peakKiB"`
}

// Calls measures tool calls in turns: to the echo server itself, through a
// process that only copies, through a router without evidence, and through one
// with.
func Calls(ctx context.Context, o CallsOptions) (r CallsReport, err error) {
	if err := errors.Join(positive("turns", o.Turns), positive("turn", o.Turn)); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(o.Dir, "tool-guardian-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	b := &callBench{o: o}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.start(ctx, dir); err != nil {
		return r, err
	}
	r = CallsReport{Machine: thisMachine()}
	if r.Cases, err = b.cases(ctx); err != nil {
		return r, err
	}
	r.Routers, r.Flush = b.routers(), b.flush.figure()
	for _, callers := range callCallers {
		c, err := chainCase(ctx, dir, callers, o.Turns*chainCallsPerTurn)
		if err != nil {
			return r, err
		}
		r.Chain = append(r.Chain, c)
	}
	r.Aims = r.aims()
	return r, nil
}

type callBench struct {
	o     CallsOptions
	sides []*side // direct, relay, off, on
	flush *flusher
	turn  int // turns so far
}

func (b *callBench) start(ctx context.Context, dir string) (err error) {
	if b.flush, err = newFlusher(dir); err != nil {
		return err
	}
	starts := []func() (*side, error){
		func() (*side, error) { return directSide(ctx, b.o.Exe) },
		func() (*side, error) { return relaySide(ctx, b.o.Exe) },
		func() (*side, error) { return routedSide(ctx, b.o.Exe, dir, "off") },
		func() (*side, error) { return routedSide(ctx, b.o.Exe, dir, "on") },
	}
	for _, start := range starts {
		s, err := start()
		if err != nil {
			return err
		}
		b.sides = append(b.sides, s)
	}
	return nil
}

func (b *callBench) close() error {
	var errs []error
	for _, s := range b.sides {
		errs = append(errs, s.close())
	}
	if b.flush != nil {
		errs = append(errs, b.flush.close())
	}
	return errors.Join(errs...)
}

func (b *callBench) cases(ctx context.Context) (cases []CallCase, err error) {
	for _, payload := range callPayloads {
		for _, callers := range callCallers {
			samples, err := b.turns(ctx, payload, callers)
			if err != nil {
				return nil, err
			}
			cases = append(cases, CallCase{Payload: payload, Callers: callers,
				Direct: samples[0].figure(), Relay: samples[1].figure(), Off: samples[2].figure(), On: samples[3].figure()})
		}
	}
	return cases, nil
}

// turns lets the sides take their turns, the first one untimed to warm up.
func (b *callBench) turns(ctx context.Context, payload, callers int) ([]sample, error) {
	text := bytes.Repeat([]byte("0123456789abcdef"), (payload+15)/16)[:payload]
	samples := make([]sample, len(b.sides))
	for turn := range b.o.Turns + 1 {
		b.o.Progress.step("calls", b.turn, (b.o.Turns+1)*len(callPayloads)*len(callCallers))
		b.turn++
		for i, s := range b.sides {
			got, err := s.turn(text, callers, time.Now().Add(b.o.Turn))
			if err != nil {
				return nil, errors.Join(s.explain(err), context.Cause(ctx))
			}
			if turn > 0 {
				samples[i].add(got)
			}
		}
		if err := b.flush.run(rawTurn); err != nil {
			return nil, fmt.Errorf("flush: %w", err)
		}
	}
	return samples, nil
}

func (b *callBench) routers() (all []Router) {
	for i, evidence := range []string{"off", "on"} {
		r := Router{Evidence: evidence}
		if now, peak, err := memory(b.sides[i+2].cmd.Process.Pid); err == nil {
			r.KiB, r.PeakKiB = now, peak
		}
		all = append(all, r)
	}
	return all
}

// aims are those of the small payload: with large ones the time goes into
// copying it.
func (r CallsReport) aims() (aims []Aim) {
	for _, c := range r.Cases {
		if c.Payload != callPayloads[0] {
			continue
		}
		if c.Callers == 1 {
			aims = append(aims,
				atMost("a call through the router adds at p50", float64(c.Off.P50-c.Direct.P50), 100, "µs"),
				atMost("a call through the router adds at p99", float64(c.Off.P99-c.Direct.P99), 1000, "µs"),
				atLeast("calls/s beside direct, one caller", ratio(c.Off.PerSecond, c.Direct.PerSecond), 0.35, ""))
			continue
		}
		aims = append(aims, atLeast(fmt.Sprintf("calls/s beside direct, %d callers", c.Callers),
			ratio(c.Off.PerSecond, c.Direct.PerSecond), 0.25, ""))
	}
	for _, c := range r.Chain {
		aims = append(aims, atMost(fmt.Sprintf("waits for the disk a call costs with evidence, callers: %d", c.Callers), c.Waits, 2, ""))
	}
	return aims
}
