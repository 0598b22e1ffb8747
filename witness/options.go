package witness

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"toolguardian/chain/tlog"
	"toolguardian/tsa"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// Engine opens the store of the data folder dir.
type Engine func(dir string) (store.Store, error)

// Timestamper asks one authority for a token over a SHA-256 digest.
type Timestamper interface {
	Stamp(ctx context.Context, digest [32]byte) (tsa.Token, error)
}

// Authority is one source of time. What its Timestamper returns is judged again
// by Verify, with the digest set, before it is kept.
type Authority struct {
	Name        string // label in leaves and paths: a-z, 0-9, dot and dash
	Timestamper Timestamper
	Verify      tsa.VerifyOptions
	Certs       [][]byte // DER, kept as blobs beside its tokens

	// Revocation gives revocation lists (DER) for the certificates of a token's
	// chain; they are judged, and kept as blobs. Nil: none.
	Revocation func(ctx context.Context, chain []*x509.Certificate) [][]byte
}

// Options of New. The zero value of a field means what its comment says.
type Options struct {
	Dir    string // made by Init
	Engine Engine // of the store in Dir

	// HeadFile is a path outside Dir where the newest checkpoint is kept; a
	// folder restored from an old copy is then refused at start. Empty: none.
	HeadFile string

	// Authorities stamp the log's checkpoints. Empty: the built-in authority in
	// Dir, whose tokens are labelled self-issued.
	Authorities []Authority
	StampEvery  time.Duration // zero: a minute

	// TimeQuorum is how many distinct operators must have stamped a checkpoint
	// for its time to count as attested. Zero: 1.
	TimeQuorum int

	// Cosigners are the witnesses that cosign our checkpoint, with their URLs,
	// and the quorum that /checkpoint waits for. Nil: none.
	Cosigners   *tlog.Policy
	CosignEvery time.Duration // zero: ten seconds
	CosignHTTP  *http.Client  // nil: the default client

	// CosignLogs are the keys, type 01, of other logs whose checkpoints are
	// cosigned and recorded, not logged.
	CosignLogs []tlog.Vkey

	// AuditEvery is how often the whole store is walked. Zero: a day; below
	// zero: never.
	AuditEvery time.Duration

	// ReadToken is asked of readers, as a bearer token. Empty: reading is open.
	ReadToken string

	// RatePerSecond bounds the heads and events of one origin, with bursts of
	// five seconds' worth. Zero: 20; below zero: no bound.
	RatePerSecond float64

	Now    func() time.Time     // nil: time.Now
	Mono   func() time.Duration // a clock that nobody sets, against which Now is held; nil: the runtime's
	Logger *slog.Logger         // nil: discards
}

const (
	defaultStampEvery = time.Minute
	defaultRate       = 20
	defaultAuditEvery = 24 * time.Hour
)

func (o Options) checked() (Options, error) {
	if o.Dir == "" || o.Engine == nil {
		return o, errors.New("witness: options need Dir and Engine")
	}
	if o.StampEvery < 0 {
		return o, fmt.Errorf("witness: StampEvery is %v, want more than zero", o.StampEvery)
	}
	if o.TimeQuorum < 0 || o.TimeQuorum > max(1, len(o.Authorities)) {
		return o, fmt.Errorf("witness: TimeQuorum is %d of %d authorities", o.TimeQuorum, max(1, len(o.Authorities)))
	}
	for _, k := range o.CosignLogs {
		if k.Type != tlog.KeyEd25519 || api.IsChainOrigin(k.Name) {
			return o, fmt.Errorf("witness: %s is no log's key of type 01; a chain is enrolled", k)
		}
	}
	if o.CosignEvery < 0 {
		return o, fmt.Errorf("witness: CosignEvery is %v, want more than zero", o.CosignEvery)
	}
	o.CosignLogs = append([]tlog.Vkey(nil), o.CosignLogs...)
	o.Authorities = append([]Authority(nil), o.Authorities...)
	names := map[string]bool{}
	for _, a := range o.Authorities {
		if err := api.CheckAuthority(a.Name); err != nil {
			return o, fmt.Errorf("witness: %w", err)
		}
		if names[a.Name] || a.Timestamper == nil {
			return o, fmt.Errorf("witness: the authority %s is there twice, or has no timestamper", a.Name)
		}
		names[a.Name] = true
	}
	return o.withDefaults(), nil
}

func (o Options) withDefaults() Options {
	if o.StampEvery == 0 {
		o.StampEvery = defaultStampEvery
	}
	if o.CosignEvery == 0 {
		o.CosignEvery = defaultCosignEvery
	}
	if o.AuditEvery == 0 {
		o.AuditEvery = defaultAuditEvery
	}
	if o.TimeQuorum == 0 {
		o.TimeQuorum = 1
	}
	if o.RatePerSecond == 0 {
		o.RatePerSecond = defaultRate
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Mono == nil {
		began := time.Now()
		o.Mono = func() time.Duration { return time.Since(began) }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
