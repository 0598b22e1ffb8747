package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"toolguardian/chain/tlog"
)

// Header names that carry hints: a client that relies on one checks it.
const (
	HeaderIndex = "Tg-Index"
	HeaderSize  = "Tg-Size"
	HeaderLast  = "Tg-Last" // beside a head: the origin's newest leaf of any type
	HeaderFork  = "Tg-Fork" // beside a head: a fork leaf that accuses the origin; repeats
)

// maxBundle bounds what a client reads: 256 entries, each with its length.
const maxBundle = tlog.TileWidth * (MaxLeaf + 2)

// Client speaks to one witness. It is safe for concurrent use and keeps no
// state; it verifies nothing, that is its caller's part.
type Client struct {
	base  string
	http  *http.Client
	token string // that readers show; empty: none
}

// New is a client of the witness at url. With a nil client the default one is
// used; deadlines come from the contexts. It follows no redirects.
func New(url string, client *http.Client) *Client {
	return &Client{base: strings.TrimSuffix(url, "/"), http: Unredirected(client)}
}

// Unredirected is client, nil standing for the default one, made to refuse
// redirects unless it has a rule of its own: who answers at one address does
// not choose what else is asked.
func Unredirected(client *http.Client) *http.Client {
	if client == nil {
		client = http.DefaultClient
	}
	if client.CheckRedirect != nil {
		return client
	}
	c := *client
	c.CheckRedirect = func(to *http.Request, _ []*http.Request) error {
		return fmt.Errorf("it points elsewhere, to %.200s: give that address, if you trust it", to.URL.Redacted())
	}
	return &c
}

// WithReadToken is a client that shows token when it reads, for a witness whose
// log is not open to everybody. What it writes goes without.
func (c *Client) WithReadToken(token string) *Client {
	d := *c
	d.token = token
	return &d
}

// AddResult is what a witness answered to a head.
type AddResult struct {
	Lines []tlog.Signature // cosignature lines, by whatever keys
	Index uint64           // hint: index of the head leaf
	Size  uint64           // hint: a log size that covers it; 0 when not told
}

// AddCheckpoint submits a head with the consistency path from the old size.
// Errors: ErrConflict with the size to start from, ErrUnknownOrigin,
// ErrForbidden, ErrUnprocessable, ErrBadRequest, ErrTooLarge, ErrRateLimited,
// ErrUnavailable, or the transport's.
func (c *Client) AddCheckpoint(ctx context.Context, old uint64, proof []tlog.Hash, head []byte) (AddResult, error) {
	body, header, err := c.post(ctx, "/add-checkpoint", AddRequest{Old: old, Proof: proof, Head: head}.Bytes())
	if err != nil {
		return AddResult{}, fmt.Errorf("add-checkpoint: %w", err)
	}
	lines, err := tlog.ParseSignatureLines(body)
	if err != nil {
		return AddResult{}, fmt.Errorf("add-checkpoint: %w: the answer: %w", ErrMalformed, err)
	}
	return AddResult{Lines: lines, Index: hint(header, HeaderIndex), Size: hint(header, HeaderSize)}, nil
}

// Checkpoint is the newest checkpoint of the log that meets its quorum.
func (c *Client) Checkpoint(ctx context.Context) ([]byte, error) {
	return c.get(ctx, "/checkpoint", MaxBody)
}

// CheckpointLatest is the newest durable checkpoint of the log.
func (c *Client) CheckpointLatest(ctx context.Context) ([]byte, error) {
	return c.get(ctx, "/checkpoint/latest", MaxBody)
}

// Head is the latest cosigned head of an origin, and as a hint the index of
// its leaf. ErrNotFound when the witness has none.
func (c *Client) Head(ctx context.Context, origin string) (note []byte, index uint64, err error) {
	sum := sha256.Sum256([]byte(origin))
	body, header, err := c.do(ctx, http.MethodGet, "/"+hex.EncodeToString(sum[:])+"/checkpoint", nil, MaxBody)
	if err != nil {
		return nil, 0, fmt.Errorf("head of %s: %w", origin, err)
	}
	return body, hint(header, HeaderIndex), nil
}

// Tile is a tile at that width: width hashes of 32 bytes, or for level -1 a
// bundle of width entries.
func (c *Client) Tile(ctx context.Context, id tlog.TileID, width int) ([]byte, error) {
	most := tlog.TileWidth * 32
	if id.Level < 0 {
		most = maxBundle
	}
	return c.get(ctx, "/"+id.Path(width), most)
}

// Entry is one entry of the log, read from its bundle as of a log size.
func (c *Client) Entry(ctx context.Context, index, size uint64) ([]byte, error) {
	id := tlog.TileID{Level: -1, Index: index / tlog.TileWidth}
	width := tlog.WidthAt(id, size)
	at := int(index % tlog.TileWidth)
	if index >= size || at >= width {
		return nil, fmt.Errorf("entry %d: %w: the log has %d entries", index, ErrNotFound, size)
	}
	b, err := c.Tile(ctx, id, width)
	if err != nil {
		return nil, err
	}
	entries, err := tlog.SplitBundle(b)
	if err != nil || len(entries) != width {
		return nil, fmt.Errorf("entry %d: %w: a bundle of %d entries, want %d: %w", index, ErrMalformed, len(entries), width, err)
	}
	return entries[at], nil
}

// Proof is the tlog-proof of the entry at index in the checkpoint of that size.
func (c *Client) Proof(ctx context.Context, index, size uint64) ([]byte, error) {
	return c.get(ctx, fmt.Sprintf("/proof?index=%d&size=%d", index, size), MaxBody)
}

// Consistency is the RFC 9162 path from size m to size n.
func (c *Client) Consistency(ctx context.Context, m, n uint64) ([]tlog.Hash, error) {
	body, err := c.get(ctx, fmt.Sprintf("/consistency?from=%d&to=%d", m, n), MaxBody)
	if err != nil {
		return nil, err
	}
	return parseHashLines(body)
}

// TimestampFrom is the size of the first stamped checkpoint that has at least
// from entries; ErrNotFound when there is none yet.
func (c *Client) TimestampFrom(ctx context.Context, from uint64) (size uint64, err error) {
	body, err := c.get(ctx, fmt.Sprintf("/timestamp?from=%d", from), 64)
	if err != nil {
		return 0, err
	}
	return parseSizeLine(body)
}

// TimestampAuthorities names the authorities whose tokens are kept for the
// checkpoint of that size.
func (c *Client) TimestampAuthorities(ctx context.Context, size uint64) ([]string, error) {
	body, err := c.get(ctx, fmt.Sprintf("/timestamp/%d", size), MaxBody)
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	for _, name := range names {
		if err := CheckAuthority(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// TimestampNote is the note whose SHA-256 the tokens of that size stamp.
func (c *Client) TimestampNote(ctx context.Context, size uint64) ([]byte, error) {
	return c.get(ctx, fmt.Sprintf("/timestamp/%d.note", size), MaxBody)
}

// Timestamp is an RFC 3161 response around the token of one authority.
func (c *Client) Timestamp(ctx context.Context, size uint64, authority string) ([]byte, error) {
	if err := CheckAuthority(authority); err != nil {
		return nil, err
	}
	return c.get(ctx, fmt.Sprintf("/timestamp/%d/%s.tsr", size, authority), MaxBody)
}

// Blob is the token or validation data with that SHA-256, checked against it.
func (c *Client) Blob(ctx context.Context, hash tlog.Hash) ([]byte, error) {
	b, err := c.get(ctx, "/blob/"+hash.Hex(), MaxBody)
	if err != nil {
		return nil, err
	}
	if tlog.Hash(sha256.Sum256(b)) != hash {
		return nil, fmt.Errorf("blob %s: %w: the bytes have another hash", hash.Hex(), ErrMalformed)
	}
	return b, nil
}

// Vkeys are the keys the witness claims; only a pin or a token makes them
// trusted.
func (c *Client) Vkeys(ctx context.Context) (log, cosigner tlog.Vkey, err error) {
	b, err := c.get(ctx, "/vkey", 4096)
	if err != nil {
		return log, cosigner, err
	}
	return ParseKeyLines(b)
}

// Enroll spends a token on a key note and gives the index of its leaf. The
// token is sent only to a witness that has the keys it pins; an empty token is
// for an origin that the operator added.
func (c *Client) Enroll(ctx context.Context, token string, keyNote []byte) (index uint64, err error) {
	req := EnrolRequest{Note: keyNote}
	if token != "" {
		t, err := ParseToken(token)
		if err != nil {
			return 0, err
		}
		log, cosigner, err := c.Vkeys(ctx)
		if err != nil {
			return 0, fmt.Errorf("enroll: %w", err)
		}
		if !t.Matches(log, cosigner) {
			return 0, fmt.Errorf("enroll: %w: %s has other keys than the token was made for; nothing was sent", ErrForbidden, c.base)
		}
		req.Token = &t
	}
	return c.postIndex(ctx, "/enroll", req.Bytes())
}

// Event reports a chain's state and gives the index of its newest event leaf.
func (c *Client) Event(ctx context.Context, note []byte) (index uint64, err error) {
	return c.postIndex(ctx, "/event", note)
}

func (c *Client) postIndex(ctx context.Context, path string, body []byte) (uint64, error) {
	b, _, err := c.post(ctx, path, body)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path[1:], err)
	}
	return parseSizeLine(b)
}

func (c *Client) post(ctx context.Context, path string, body []byte) ([]byte, http.Header, error) {
	return c.do(ctx, http.MethodPost, path, body, MaxBody)
}

func (c *Client) get(ctx context.Context, path string, most int) ([]byte, error) {
	b, _, err := c.do(ctx, http.MethodGet, path, nil, most)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, most int) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	if c.token != "" && method == http.MethodGet {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, int64(most)+1))
	if err != nil {
		return nil, nil, err
	}
	if len(b) > most {
		return nil, nil, fmt.Errorf("%w: an answer of more than %d bytes", ErrTooLarge, most)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, errorOf(resp, b, method == http.MethodPost)
	}
	return b, resp.Header, nil
}

func hint(h http.Header, name string) uint64 {
	n, err := strconv.ParseUint(h.Get(name), 10, 63)
	if err != nil {
		return 0
	}
	return n
}

// parseHashLines reads base64 hashes, one a line.
func parseHashLines(b []byte) ([]tlog.Hash, error) {
	var hashes []tlog.Hash
	for line := range strings.Lines(string(b)) {
		h, err := tlog.ParseHashBase64(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, fmt.Errorf("%w: hash line %d: %w", ErrMalformed, len(hashes)+1, err)
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}
