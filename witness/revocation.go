package witness

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"toolguardian/witness/api"
)

const (
	crlMost     = 128 << 10 // bytes: a blob must fit where it is shown
	crlDeadline = 10 * time.Second
	crlFresh    = 24 * time.Hour // a list is asked for again after this, or at its own end
)

// RevocationLists fetches the lists that certificates name (RFC 5280 section
// 4.2.1.13), so that they can be kept beside a token while they still exist. A
// list that cannot be had, or that the issuer has not signed, is left out: it
// would be no evidence. It is safe for concurrent use.
type RevocationLists struct {
	http   *http.Client
	now    func() time.Time
	logger *slog.Logger

	mu   sync.Mutex
	kept map[string]keptList // by URL; guarded by mu
}

type keptList struct {
	der   []byte
	until time.Time
}

// NewRevocationLists makes an empty set; nil stands for the default client.
func NewRevocationLists(client *http.Client, now func() time.Time, logger *slog.Logger) *RevocationLists {
	return &RevocationLists{http: api.Unredirected(client), now: now, logger: logger, kept: map[string]keptList{}}
}

// Of gives the lists that speak for a chain, signer first and root last.
func (l *RevocationLists) Of(ctx context.Context, chain []*x509.Certificate) (ders [][]byte) {
	for i := range len(chain) - 1 {
		for _, url := range chain[i].CRLDistributionPoints {
			der, err := l.get(ctx, url, chain[i+1])
			if err == nil {
				ders = append(ders, der)
				break
			}
			l.logger.Warn("no revocation list", "certificate", chain[i].Subject.String(), "url", url, "err", err)
		}
	}
	return ders
}

func (l *RevocationLists) get(ctx context.Context, url string, issuer *x509.Certificate) ([]byte, error) {
	l.mu.Lock()
	kept := l.kept[url]
	l.mu.Unlock()
	if l.now().Before(kept.until) {
		return kept.der, nil
	}
	der, err := l.fetch(ctx, url)
	if err != nil {
		return nil, err
	}
	list, err := x509.ParseRevocationList(der)
	if err != nil {
		return nil, err
	}
	if err := list.CheckSignatureFrom(issuer); err != nil {
		return nil, err
	}
	until := l.now().Add(crlFresh)
	if !list.NextUpdate.IsZero() && list.NextUpdate.Before(until) {
		until = list.NextUpdate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[url] = keptList{der, until}
	return der, nil
}

func (l *RevocationLists) fetch(ctx context.Context, url string) ([]byte, error) {
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return nil, errors.New("not an http address")
	}
	ctx, cancel := context.WithTimeout(ctx, crlDeadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	der, err := io.ReadAll(io.LimitReader(resp.Body, crlMost+1))
	if err == nil && len(der) > crlMost {
		err = fmt.Errorf("longer than %d bytes", crlMost)
	}
	return der, err
}
