package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const stateless = "2026-07-28"

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params params          `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

type params struct {
	Name      string                     `json:"name"`
	Cursor    string                     `json:"cursor"`
	Version   string                     `json:"protocolVersion"`
	Arguments json.RawMessage            `json:"arguments"`
	Meta      map[string]json.RawMessage `json:"_meta"`
}

// fill puts the request's own bytes into a script's line.
func (s *server) fill(m message, text string) string {
	return strings.NewReplacer("$ID", string(m.ID), "$TOKEN", string(m.Params.Meta["progressToken"]),
		"$ARGS", string(m.Params.Arguments), "$COUNT", strconv.FormatInt(s.count.Add(1), 10)).Replace(text)
}

type server struct {
	mode   string
	blocks []block
	record *os.File
	count  atomic.Int64

	out sync.Mutex // one line at a time

	mu    sync.Mutex // guards the two below
	heard map[string]chan struct{}
	asked chan message // the answer to a request of ours
}

func (s *server) receive(line []byte) {
	if s.record != nil {
		s.record.Write(line)
	}
	var m message
	if json.Unmarshal(line, &m) != nil {
		return
	}
	if m.Method == "" {
		s.answered(m)
		return
	}
	s.mark(m.Method)
	if s.mode == "echo" && m.Method == "tools/call" {
		s.reply(m, result(string(m.Params.Arguments)))
		return
	}
	if m.Method == "notifications/initialized" {
		s.handle(m) // what it sends stands before the answers to later requests
		return
	}
	go s.handle(m)
}

func (s *server) handle(m message) {
	name := m.Params.Name + m.Params.Cursor
	if name != "" && s.has(m.Method+" "+name) {
		if s.play(block{key: m.Method + " " + name}, m) {
			return
		}
	} else if s.play(block{key: m.Method}, m) {
		return
	}
	if m.ID != nil && s.mode != "silent" {
		s.usual(m)
	}
}

func (s *server) has(key string) bool {
	for _, b := range s.blocks {
		if b.key == key {
			return true
		}
	}
	return false
}

// usual is the polite server.
func (s *server) usual(m message) {
	switch {
	case m.Method == "initialize" && s.mode != "stateless":
		s.reply(m, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"hostile","version":"1"}}`, m.Params.Version))
	case m.Method == "server/discover" && s.mode != "stateful":
		s.reply(m, `{"resultType":"complete","supportedVersions":["`+stateless+`"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"hostile","version":"1"}}}`)
	case m.Method == "initialize":
		s.fail(m, -32601, "method not found: initialize")
	case s.mode == "stateless" && !m.enveloped():
		s.fail(m, -32602, "the _meta envelope is missing")
	case m.Method == "ping":
		s.reply(m, `{}`)
	case m.Method == "tools/list":
		s.reply(m, `{"tools":[`+strings.Join(tools, ",")+`]}`)
	case m.Method == "tools/call":
		s.call(m)
	case m.Method == "subscriptions/listen" && s.mode == "stateless":
	default:
		s.fail(m, -32601, "method not found: "+m.Method)
	}
}

func (m message) enveloped() bool {
	const prefix = "io.modelcontextprotocol/"
	meta := m.Params.Meta
	return string(meta[prefix+"protocolVersion"]) == `"`+stateless+`"` &&
		meta[prefix+"clientInfo"] != nil && meta[prefix+"clientCapabilities"] != nil
}

var tools = []string{
	`{"name":"echo","description":"gives its arguments back","inputSchema":{"type":"object"}}`,
	`{"name":"slow","description":"answers after ms milliseconds","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"}}}}`,
	`{"name":"progress","description":"reports n steps of ms milliseconds","inputSchema":{"type":"object","properties":{"n":{"type":"integer"},"ms":{"type":"integer"}}}}`,
	`{"name":"env","description":"its environment","inputSchema":{"type":"object"}}`,
	`{"name":"cwd","description":"its folder","inputSchema":{"type":"object"}}`,
	`{"name":"ask","description":"asks the client and gives the answer back","inputSchema":{"type":"object","properties":{"method":{"type":"string"}}}}`,
	`{"name":"exit","description":"ends the server","inputSchema":{"type":"object","properties":{"code":{"type":"integer"}}}}`,
}

func (s *server) call(m message) {
	var a struct {
		MS, N, Code int
		Method      string
	}
	if len(m.Params.Arguments) > 0 {
		json.Unmarshal(m.Params.Arguments, &a)
	}
	wait := time.Duration(a.MS) * time.Millisecond
	switch m.Params.Name {
	case "slow":
		time.Sleep(wait)
		s.reply(m, result("waited"))
	case "progress":
		for i := range a.N {
			time.Sleep(wait)
			s.write(s.fill(m, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$TOKEN,"progress":%d,"total":%d}}`+"\n", i+1, a.N)))
		}
		s.reply(m, result("done"))
	case "env":
		s.reply(m, result(strings.Join(os.Environ(), "\n")))
	case "cwd":
		dir, err := os.Getwd()
		must(err)
		s.reply(m, result(dir))
	case "ask":
		s.reply(m, result(s.ask(a.Method)))
	case "exit":
		fmt.Fprintln(os.Stderr, "told to exit with "+strconv.Itoa(a.Code))
		os.Exit(a.Code)
	default:
		s.reply(m, result(string(m.Params.Arguments)))
	}
}

// ask sends a request to the client and returns the raw answer.
func (s *server) ask(method string) string {
	c := make(chan message, 1)
	s.mu.Lock()
	s.asked = c
	s.mu.Unlock()
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q-1","method":%q}`+"\n", method))
	m := <-c
	return string(m.ID) + " " + string(m.Result) + string(m.Error)
}

func (s *server) answered(m message) {
	s.mu.Lock()
	c := s.asked
	s.asked = nil
	s.mu.Unlock()
	if c != nil {
		c <- m
	}
}

// mark wakes the scripts that wait for a method.
func (s *server) mark(method string) {
	c := s.signal(method)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

func (s *server) signal(method string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heard[method] == nil {
		s.heard[method] = make(chan struct{})
	}
	return s.heard[method]
}

func (s *server) write(text string) {
	s.out.Lock()
	defer s.out.Unlock()
	os.Stdout.WriteString(text)
}

func (s *server) reply(m message, result string) {
	s.write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + "}\n")
}

func (s *server) fail(m message, code int, text string) {
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`+"\n", m.ID, code, text))
}

func result(text string) string {
	b, err := json.Marshal(text)
	must(err)
	return `{"content":[{"type":"text","text":` + string(b) + `}]}`
}
