package proxy

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"toolguardian/proxy/backend"
	"toolguardian/proxy/config"
	"toolguardian/proxy/front"
	"toolguardian/proxy/wire"
	"toolguardian/receipts"
)

// hostile is the test server's binary, built once.
var hostile string

func TestMain(m *testing.M) {
	if backend.SupervisorMain() {
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "hostile")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	hostile = filepath.Join(dir, "hostile")
	if out, err := exec.Command("go", "build", "-o", hostile, "../testdata/hostile").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the test server: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// diary is the order in which things happened, across goroutines.
type diary struct {
	mu     sync.Mutex
	events []string
}

func (j *diary) add(format string, a ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, fmt.Sprintf(format, a...))
}

func (j *diary) all() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.events)
}

// recorder seals receipts into memory as a chain would, and fails on demand.
type recorder struct {
	j    *diary
	priv ed25519.PrivateKey

	mu    sync.Mutex
	lines [][]byte
	kept  []receipts.Receipt
	fail  error         // when not nil, nothing is durable
	spoil receipts.Kind // the next receipt of this kind is not durable

	delay time.Duration // how long the disk takes
}

func newRecorder(t testing.TB, j *diary) *recorder {
	t.Helper()
	_, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &recorder{j: j, priv: priv}
}

func (m *recorder) setFail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *recorder) Append(ctx context.Context, r receipts.Receipt) (receipts.Position, error) {
	time.Sleep(m.delay)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), m.fail); err != nil {
		m.j.add("lost %s", r.Kind)
		return receipts.Position{}, err
	}
	if r.Kind == m.spoil {
		m.spoil = ""
		m.j.add("lost %s", r.Kind)
		return receipts.Position{}, errors.New("the disk hiccupped")
	}
	l := receipts.Link{Origin: "test/c/00000000000000000000000000000000", Seq: uint64(len(m.lines) + 1)}
	if len(m.lines) > 0 {
		l.Prev = sha256.Sum256(m.lines[len(m.lines)-1])
	}
	line, err := receipts.Seal(r, l, m.priv)
	if err != nil {
		m.j.add("refused %s: %v", r.Kind, err)
		return receipts.Position{}, err
	}
	m.lines, m.kept = append(m.lines, line), append(m.kept, r)
	m.j.add("durable %s", r.Kind)
	return receipts.Position{Origin: l.Origin, Seq: l.Seq}, nil
}

func (m *recorder) PersonSalt(_ context.Context, person []byte) ([32]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return sha256.Sum256(append([]byte("salt of "), person...)), m.fail
}

// receipt is one recorded receipt with its payload's predicate.
type receipt struct {
	receipts.Receipt
	predicate json.RawMessage
}

func (m *recorder) all(t testing.TB) (out []receipt) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, line := range m.lines {
		e, err := receipts.ParseLine(line)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, receipt{m.kept[i], wire.Get(e.Payload, "predicate")})
	}
	return out
}

func (m *recorder) kinds(t testing.TB) (out []string) {
	t.Helper()
	for _, r := range m.all(t) {
		out = append(out, string(r.Kind))
	}
	return out
}

// only returns the one receipt of a kind.
func (m *recorder) only(t testing.TB, k receipts.Kind) receipt {
	t.Helper()
	var found []receipt
	for _, r := range m.all(t) {
		if r.Kind == k {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d receipts of kind %s, want 1: %v", len(found), k, m.kinds(t))
	}
	return found[0]
}

// commits checks that a receipt commits to data under the field; nil: that it
// does not have the field.
func (r receipt) commits(t testing.TB, f receipts.FieldID, data []byte) {
	t.Helper()
	for _, c := range r.Fields {
		if c.Field != f {
			continue
		}
		if data == nil {
			t.Errorf("%s has the field %s", r.Kind, f)
		} else if c.Commitment != receipts.Commit(f, c.Salt, data).Commitment {
			t.Errorf("%s: %s is not the commitment of %.200q", r.Kind, f, data)
		}
		return
	}
	if data != nil {
		t.Errorf("%s lacks the field %s", r.Kind, f)
	}
}

func (r receipt) member(path ...string) string { return string(wire.Get(r.predicate, path...)) }

// memory is a backend in this process.
type memory struct {
	j      *diary
	status backend.Status
	tools  []json.RawMessage
	ready  chan struct{} // nil: it was up from the start
	rise   func()        // as a backend comes up: tools first, then the state

	changed func() // tells that tools has changed
	answer  func(ctx context.Context, method string, params json.RawMessage, o backend.Observer) (backend.Reply, error)

	quiet bool // keep no requests
	mu    sync.Mutex
	seen  []string
}

func (m *memory) Status() backend.Status {
	if m.ready != nil {
		select {
		case <-m.ready:
		default:
			return backend.Status{State: backend.Starting}
		}
	}
	return m.status
}

func (m *memory) Ready(ctx context.Context) error {
	if m.ready == nil {
		return m.status.Err
	}
	select {
	case <-m.ready:
		return m.status.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *memory) Tools() []json.RawMessage { return m.tools }

func (m *memory) Request(ctx context.Context, method string, params json.RawMessage, o backend.Observer) (backend.Reply, error) {
	if !m.quiet {
		m.mu.Lock()
		m.seen = append(m.seen, string(params))
		m.mu.Unlock()
	}
	if m.j != nil {
		m.j.add("sent %s", method)
	}
	return m.answer(ctx, method, params, o)
}

func (m *memory) Close(context.Context) {}

func (m *memory) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.seen)
}

// echo answers with a text block that holds the arguments.
func echo(_ context.Context, _ string, params json.RawMessage, _ backend.Observer) (backend.Reply, error) {
	text := textBlock(string(wire.Get(params, "arguments")))
	return backend.Reply{Result: json.RawMessage(`{"content":[` + string(text) + `]}`)}, nil
}

// answers gives the same result each time.
func answers(result string) func(context.Context, string, json.RawMessage, backend.Observer) (backend.Reply, error) {
	return func(context.Context, string, json.RawMessage, backend.Observer) (backend.Reply, error) {
		return backend.Reply{Result: json.RawMessage(result)}, nil
	}
}

const echoTool = `{"name":"echo","description":"Say it back","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}`

func newMemory(j *diary, tools ...string) *memory {
	m := &memory{j: j, status: backend.Status{State: backend.Up}, answer: echo}
	for _, t := range tools {
		m.tools = append(m.tools, json.RawMessage(t))
	}
	return m
}

// memories are options for backends in this process, by name.
func memories(backends map[string]*memory) Options {
	o := Options{Version: "test", Config: &config.Config{}, CheckLimit: time.Minute}
	names := make([]string, 0, len(backends))
	for name := range backends {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		o.Config.Servers = append(o.Config.Servers, config.Server{Name: name})
	}
	o.Start = func(_ context.Context, s backend.Spec, bo backend.Options) Backend {
		m := backends[s.Name]
		bo.OnState(nil)
		m.changed = func() { bo.OnCatalogue(nil) }
		if m.rise = func() { bo.OnCatalogue(nil); close(m.ready) }; m.ready == nil {
			bo.OnCatalogue(nil)
		}
		return m
	}
	return o
}

// client speaks MCP to a router over pipes.
type client struct {
	t      testing.TB
	in     *io.PipeWriter
	cancel context.CancelFunc
	ended  chan error

	mu      sync.Mutex
	waiting map[string]chan wire.Message
	notes   []wire.Message
	next    int
}

// connect serves r over pipes and does the handshake of a revision.
func connect(t testing.TB, r *Router, revision string) *client {
	t.Helper()
	f, err := front.New(front.Options{Handler: r, Info: front.Info{Name: "tool-guardian", Version: "test"}, Principal: "someone"})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := io.Pipe()
	answers, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{t: t, in: theirs, cancel: cancel, ended: make(chan error, 1), waiting: map[string]chan wire.Message{}}
	go func() {
		err := r.Serve(ctx, f, ours, out)
		out.Close()
		c.ended <- err
	}()
	go c.read(answers)
	t.Cleanup(func() {
		c.in.Close()
		cancel()
		<-c.ended
		c.ended <- nil
	})
	c.request("initialize", `{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"tester","version":"1"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *client) read(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		m, err := wire.Parse(line[:len(line)-1])
		if err != nil {
			panic(fmt.Sprintf("the router wrote %q: %v", line, err))
		}
		c.mu.Lock()
		if ch := c.waiting[m.ID.String()]; ch != nil {
			ch <- m
		} else {
			c.notes = append(c.notes, m)
		}
		c.mu.Unlock()
	}
}

func (c *client) send(line string) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Error(err)
	}
}

// start sends a request and returns its id and where its answer comes.
func (c *client) start(method, params string) (id string, answer chan wire.Message) {
	c.mu.Lock()
	c.next++
	id, answer = fmt.Sprintf(`"c-%d"`, c.next), make(chan wire.Message, 1)
	c.waiting[id] = answer
	c.mu.Unlock()
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return id, answer
}

func (c *client) request(method, params string) wire.Message {
	c.t.Helper()
	_, answer := c.start(method, params)
	select {
	case m := <-answer:
		return m
	case <-time.After(5 * time.Minute):
		c.t.Fatalf("%s was not answered", method)
	}
	panic("unreachable")
}

// tool calls a router tool and returns the result object.
func (c *client) tool(name, arguments string) json.RawMessage {
	c.t.Helper()
	m := c.request("tools/call", `{"name":"`+name+`","arguments":`+arguments+`}`)
	if m.Result == nil {
		c.t.Fatalf("%s %s: %s", name, arguments, m.Err)
	}
	return m.Result
}

// close ends the client's stream and waits until the router is done.
func (c *client) close() error {
	c.in.Close()
	err := <-c.ended
	c.ended <- nil
	return err
}

// texts are the text blocks of a result.
func texts(t testing.TB, result json.RawMessage) (out []string) {
	t.Helper()
	var r struct {
		Content []struct{ Type, Text string }
	}
	if err := json.Unmarshal(result, &r); err != nil {
		t.Fatalf("%s: %v", result, err)
	}
	for _, b := range r.Content {
		out = append(out, b.Text)
	}
	return out
}

func joined(t testing.TB, result json.RawMessage) string {
	t.Helper()
	return strings.Join(texts(t, result), "\n")
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func hexOf(h [32]byte) string { return fmt.Sprintf("%x", h) }

func noTool() backend.Reply {
	raw := json.RawMessage(`{"code":-32602,"message":"no such tool","data":{"a":1.0}}`)
	return backend.Reply{Err: wire.ParseError(raw)}
}

// settings is a lookup in NAME=value pairs.
func settings(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				return v, true
			}
		}
		return "", false
	}
}
