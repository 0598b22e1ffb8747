//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// client is one MCP client with a router of its own, on real pipes.
// All it reads is kept in NAME.out, what the router says in NAME.err.
type client struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	replies chan string // a line each; closed at the router's end
	exit    error       // after done
	done    chan struct{}
}

// mcp NAME start [K=V…] [WORDS…] starts a router.
//
// mcp NAME play FILE sends the file's lines that begin with "> " and demands,
// for each that begins with "< ", a line that the router has written and that
// was not demanded before, matching the regular expression that follows.
//
// mcp NAME repeat FILE PATH plays the file again and again until PATH exists.
//
// mcp NAME close|term|kill ends it: by end of input, SIGTERM, SIGKILL. With !
// an exit other than 0 is demanded.
//
// mcp NAME run FILE [K=V…] [WORDS…] is start, play and close.
func mcp(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: mcp NAME start|play|repeat|close|term|kill|run …")
	}
	name, rest := args[0], args[2:]
	w := worldOf(ts)
	switch args[1] {
	case "start":
		w.clients[name] = startClient(ts, name, rest)
	case "play":
		w.clients[name].play(ts, rest[0])
	case "repeat":
		if !poll(func() bool {
			w.clients[name].play(ts, rest[0])
			_, err := os.Stat(ts.MkAbs(rest[1]))
			return err == nil
		}) {
			ts.Fatalf("%s is not there within %s", rest[1], deadline)
		}
	case "run":
		c := startClient(ts, name, rest[1:])
		w.clients[name] = c
		c.play(ts, rest[0])
		c.end(ts, neg, c.in.Close)
	case "close":
		c := w.clients[name]
		c.end(ts, neg, c.in.Close)
	case "term":
		c := w.clients[name]
		c.end(ts, neg, func() error { return c.cmd.Process.Signal(syscall.SIGTERM) })
	case "kill":
		c := w.clients[name]
		c.end(ts, neg, c.cmd.Process.Kill)
	default:
		ts.Fatalf("mcp %s: %q is unknown", name, args[1])
	}
}

func startClient(ts *testscript.TestScript, name string, words []string) *client {
	split := slices.IndexFunc(words, func(w string) bool { return !strings.Contains(w, "=") || strings.HasPrefix(w, "-") })
	if split < 0 {
		split = len(words)
	}
	c := &client{cmd: command(ts, words[:split], words[split:]), replies: make(chan string, 1000), done: make(chan struct{})}
	out, err := os.OpenFile(ts.MkAbs(name+".out"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	errs, err := os.OpenFile(ts.MkAbs(name+".err"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	c.cmd.Stderr = errs
	c.in, err = c.cmd.StdinPipe()
	ts.Check(err)
	pipe, err := c.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(c.cmd.Start())
	go c.read(io.TeeReader(pipe, out), out, errs)
	return c
}

// read delivers lines until the router ends. No goroutine but this waits for
// the process.
func (c *client) read(r io.Reader, files ...*os.File) {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			c.replies <- strings.TrimSuffix(line, "\n")
		}
		if err != nil {
			break
		}
	}
	c.exit = c.cmd.Wait()
	for _, f := range files {
		f.Close()
	}
	close(c.replies)
	close(c.done)
}

func (c *client) play(ts *testscript.TestScript, file string) {
	var waiting []string // read, not demanded yet
	for line := range strings.Lines(ts.ReadFile(file)) {
		line = strings.TrimSuffix(line, "\n")
		switch mark, rest, _ := strings.Cut(line, " "); mark {
		case ">":
			if _, err := io.WriteString(c.in, rest+"\n"); err != nil {
				ts.Fatalf("%s: send %s: %v", file, rest, err)
			}
		case "<":
			waiting = c.demand(ts, rest, waiting)
		case "", "#":
		default:
			ts.Fatalf("%s: line begins neither with > nor with <: %s", file, line)
		}
	}
}

// demand waits for a line that matches and gives the others back.
func (c *client) demand(ts *testscript.TestScript, pattern string, waiting []string) []string {
	re := regexp.MustCompile(pattern)
	if i := slices.IndexFunc(waiting, re.MatchString); i >= 0 {
		return slices.Delete(waiting, i, i+1)
	}
	timeout := time.NewTimer(deadline)
	defer timeout.Stop()
	for {
		select {
		case line, open := <-c.replies:
			switch {
			case !open:
				ts.Fatalf("the router ended (%v) before it wrote %q; it had written\n%s", c.exit, pattern, strings.Join(waiting, "\n"))
			case re.MatchString(line):
				return waiting
			}
			waiting = append(waiting, line)
		case <-timeout.C:
			ts.Fatalf("no %q within %s; the router wrote\n%s", pattern, deadline, strings.Join(waiting, "\n"))
		}
	}
}

// end ends the router and demands how it exits; killed, it has no exit code.
func (c *client) end(ts *testscript.TestScript, neg bool, how func() error) {
	ts.Check(how())
	timeout := time.NewTimer(deadline)
	defer timeout.Stop()
	select {
	case <-c.done:
	case <-timeout.C:
		ts.Fatalf("the router has not ended within %s", deadline)
	}
	if (c.exit != nil) != neg {
		ts.Fatalf("the router's end: %v", c.exit)
	}
}

// kill ends what a script left running.
func (c *client) kill() {
	c.cmd.Process.Kill()
	<-c.done
}

// protocolOnly FILE… demands that every line is one JSON-RPC message.
func protocolOnly(ts *testscript.TestScript, neg bool, args []string) {
	message := regexp.MustCompile(`^\{.*"jsonrpc":"2\.0".*\}$`)
	for _, name := range args {
		text := ts.ReadFile(name)
		if neg || text == "" || !strings.HasSuffix(text, "\n") {
			ts.Fatalf("%s does not end with a whole line", name)
		}
		for line := range strings.Lines(text) {
			if b := []byte(strings.TrimSuffix(line, "\n")); !message.Match(b) || !json.Valid(b) {
				ts.Fatalf("%s holds a line that is no message: %s", name, line)
			}
		}
	}
}

// ended FILE waits until the process whose pid is in the file is gone.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: ended FILE")
	}
	pid := number(ts, strings.TrimSpace(ts.ReadFile(args[0])))
	if !poll(func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }) {
		ts.Fatalf("process %d still runs", pid)
	}
}

// get URL FILE fetches a resource into a file.
func get(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: get URL FILE")
	}
	resp, err := http.Get(args[0])
	ts.Check(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("%s: %s", args[0], resp.Status)
	}
	b, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o600))
}

// relay NAME FILE sets a variable to a URL that forwards each connection to
// the URL in the file, so that a server may come back at another port.
func relay(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: relay NAME FILE")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Setenv(args[0], fmt.Sprintf("http://%s", l.Addr()))
	file := ts.MkAbs(args[1])
	var open sync.WaitGroup
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() { forward(c, file) })
		}
	})
	ts.Defer(func() { l.Close() })
}

func forward(c net.Conn, file string) {
	defer c.Close()
	to, err := os.ReadFile(file)
	if err != nil {
		return
	}
	s, err := net.Dial("tcp", string(bytes.TrimPrefix(bytes.TrimSpace(to), []byte("http://"))))
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		io.Copy(s, c)
		s.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(c, s)
}
