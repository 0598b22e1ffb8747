package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"toolguardian/witness"
	"toolguardian/witness/store/bolt"
)

const (
	manyWriters = 64
	rawTurn     = 50 * time.Millisecond // of the bare costs
	maxLoad     = 20 * time.Second
)

// WitnessOptions of Witness.
type WitnessOptions struct {
	Dir      string        // where temporary folders are made; empty: the system's
	Turns    int           // of each measurement, in turns with the raw ones
	Heads    int           // that each of the writers sends in a turn
	Origins  int           // that send a head a second each, over HTTP; 0: this is not measured
	Load     time.Duration // how long they do
	Open     int           // heads of the log that is opened and proves; 0: this is not measured
	Proofs   int           // made from it
	Progress *Progress     // nil: silent
}

// WitnessReport tells what a head costs the witness.
type WitnessReport struct {
	Machine Machine    `json:"machine"`
	Writers int        `json:"writers"`
	Many    Figure     `json:"many"`     // heads of Writers origins at once, in process
	One     Figure     `json:"one"`      // of one origin, in process
	HTTP    Figure     `json:"httpMany"` // as Many, through HTTP on loopback
	HTTPOne Figure     `json:"httpOne"`
	Origins int        `json:"origins"`
	Load    Figure     `json:"load"` // heads of Origins origins, one a second each, through HTTP
	Log     LogFigures `json:"log"`
	Flush   Figure     `json:"flush"`
	Sign    Figure     `json:"sign"`
	Verify  Figure     `json:"verify"`
	Pairs   Figure     `json:"signAndVerify"` // on two cores at once
	Aims    []Aim      `json:"aims"`
}

// Witness measures heads of pre-signed chains against a real witness with its
// real store, beside raw flushes and signatures.
func Witness(ctx context.Context, o WitnessOptions) (r WitnessReport, err error) {
	if err := o.check(); err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp(o.Dir, "tool-guardian-bench-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	b := &witnessBench{o: o}
	if b.flush, err = newFlusher(dir); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.flush.close()) }()
	if err := b.prepare(ctx, dir); err != nil {
		return r, err
	}
	if err := withWitness(b.options(dir), func(s *witness.Server, url string) error { return b.measure(ctx, s, url) }); err != nil {
		return r, err
	}
	r = WitnessReport{
		Machine: thisMachine(), Writers: manyWriters,
		Many: b.many.figure(), One: b.one.figure(), HTTP: b.httpMany.figure(), HTTPOne: b.httpOne.figure(),
		Flush: b.flush.figure(), Sign: b.signing.sign.figure(), Verify: b.signing.verify.figure(),
		Pairs: b.signing.pairs.figure(), Origins: o.Origins, Load: b.loaded.figure(),
	}
	if o.Open > 0 {
		at := b.options(filepath.Join(dir, "filled"))
		if r.Log, err = measureLog(ctx, at, o.Open, o.Proofs, o.Progress); err != nil {
			return r, err
		}
	}
	r.Aims = r.aims()
	return r, nil
}

func (o WitnessOptions) check() error {
	err := errors.Join(positive("turns", o.Turns), positive("heads", o.Heads))
	if o.Origins > 0 && (o.Load < time.Second || o.Load > maxLoad) {
		err = errors.Join(err, fmt.Errorf("--load is %v: give 1s to %v", o.Load, maxLoad))
	}
	return err
}

type witnessBench struct {
	o       WitnessOptions
	writers []*writer
	flush   *flusher
	signing *signing

	load *load // nil: not measured

	many, one, httpMany, httpOne, loaded sample
}

func (b *witnessBench) options(dir string) witness.Options {
	return witness.Options{Dir: filepath.Join(dir, "witness"), Engine: bolt.OpenDir, RatePerSecond: -1, StampEvery: time.Hour}
}

// prepare signs every head of the run and enrols the writers.
func (b *witnessBench) prepare(ctx context.Context, dir string) (err error) {
	if b.signing, err = newSigning(); err != nil {
		return err
	}
	for i := range manyWriters {
		n := 2 * b.o.Heads
		if i == 0 {
			n += 2 * b.oneHeads() // it sends alone as well
		}
		b.o.Progress.step("signing heads", i, manyWriters)
		w, err := newWriter(n * (b.o.Turns + 1))
		if err != nil {
			return err
		}
		b.writers = append(b.writers, w)
	}
	var vkeys []string
	if b.o.Origins > 0 {
		if b.load, err = newLoad(b.o.Origins, b.o.Load); err != nil {
			return err
		}
		for _, w := range b.load.writers {
			vkeys = append(vkeys, w.vkey)
		}
	}
	for _, w := range b.writers {
		vkeys = append(vkeys, w.vkey)
	}
	return newWitness(ctx, b.options(dir), vkeys...)
}

// oneHeads is how many heads a single writer sends in a turn.
func (b *witnessBench) oneHeads() int { return 8 * b.o.Heads }

// measure takes turns, the first one untimed.
func (b *witnessBench) measure(ctx context.Context, s *witness.Server, url string) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: manyWriters}}
	defer client.CloseIdleConnections()
	inProcess := func(body []byte) error {
		_, err := s.AddCheckpoint(ctx, body)
		return err
	}
	overHTTP := func(body []byte) error { return post(ctx, client, url+"/add-checkpoint", body) }
	for turn := range b.o.Turns + 1 {
		b.o.Progress.step("heads", turn, b.o.Turns+1)
		if turn == 1 {
			b.many, b.one, b.httpMany, b.httpOne = sample{}, sample{}, sample{}, sample{}
		}
		err := errors.Join(
			b.turn(&b.many, manyWriters, b.o.Heads, inProcess),
			b.flush.run(rawTurn),
			b.turn(&b.one, 1, b.oneHeads(), inProcess),
			b.signing.run(rawTurn),
			b.turn(&b.httpMany, manyWriters, b.o.Heads, overHTTP),
			b.flush.run(rawTurn),
			b.turn(&b.httpOne, 1, b.oneHeads(), overHTTP),
			b.signing.run(rawTurn),
		)
		if err != nil {
			return err
		}
	}
	return b.underLoad(ctx, url)
}

func (b *witnessBench) underLoad(ctx context.Context, url string) (err error) {
	if b.load == nil {
		return nil
	}
	b.o.Progress.step("heads a second", b.o.Origins, b.o.Origins)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: b.o.Origins}}
	defer client.CloseIdleConnections()
	b.loaded, err = b.load.run(ctx, client, url)
	return err
}

func (b *witnessBench) turn(to *sample, writers, each int, send func([]byte) error) error {
	s, err := atOnce(writers, each, func(i int) error { return send(b.writers[i].next()) })
	to.add(s)
	return err
}

func post(ctx context.Context, c *http.Client, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
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

func (r WitnessReport) aims() []Aim {
	// A head costs one check and one signature, which may take half of two
	// cores; and however slow the disk is, a batch shares its flushes.
	bound := min(5*r.Flush.PerSecond, r.Pairs.PerSecond/2)
	aims := []Aim{
		atLeast(fmt.Sprintf("heads/s of %d writers, min(5 x raw flushes, half of 2/(verify+sign))", r.Writers), r.Many.PerSecond, bound, "/s"),
		atMost("one writer at p50, 2 raw flushes and 250 µs", float64(r.One.P50), 2*float64(r.Flush.P50)+250, "µs"),
	}
	if r.Origins > 0 {
		aims = append(aims, atLeast(fmt.Sprintf("heads/s of %d origins, one a second each", r.Origins), r.Load.PerSecond, 0.95*float64(r.Origins), "/s"))
	}
	if r.Log.Leaves > 0 {
		aims = append(aims,
			atMost(fmt.Sprintf("opening a log of %d heads", r.Log.Leaves), float64(r.Log.OpenedIn)/1e3, 1000, "ms"),
			atLeast("proofs/s of recent leaves", r.Log.Recent.PerSecond, 50_000, "/s"))
	}
	return aims
}
