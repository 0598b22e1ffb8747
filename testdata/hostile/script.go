package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// block is what to do on a message.
type block struct {
	key   string // "start", "METHOD" or "METHOD NAME"
	steps []step
}

type step struct{ verb, arg string }

func parse(text string) ([]block, error) {
	var out []block
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		verb, arg, _ := strings.Cut(line, " ")
		switch {
		case line == "" || verb == "#":
		case verb == "start" || verb == "on":
			key := arg
			if verb == "start" {
				key = "start"
			}
			out = append(out, block{key: key})
		case len(out) == 0:
			return nil, fmt.Errorf("script: %q stands before any block", line)
		default:
			last := &out[len(out)-1]
			last.steps = append(last.steps, step{verb, arg})
		}
	}
	return out, nil
}

// play runs the script's block for the key of b. It returns false when the
// usual answer is wanted.
func (s *server) play(b block, m message) bool {
	for _, have := range s.blocks {
		if have.key != b.key {
			continue
		}
		for _, st := range have.steps {
			if !s.step(st, m) {
				return false
			}
		}
		return true
	}
	return false
}

func (s *server) step(st step, m message) bool {
	switch st.verb {
	case ">":
		s.write(s.fill(m, st.arg) + "\n")
	case "raw":
		s.write(s.fill(m, st.arg))
	case "big":
		s.reply(m, result(strings.Repeat("x", number(st.arg))))
	case "deep":
		n := number(st.arg)
		s.reply(m, `{"content":[],"deep":`+strings.Repeat("[", n)+strings.Repeat("]", n)+`}`)
	case "sleep":
		d, err := time.ParseDuration(st.arg)
		must(err)
		time.Sleep(d)
	case "wait":
		<-s.signal(st.arg)
	case "once":
		f, err := os.OpenFile(st.arg, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return false
		}
		f.Close()
	case "spawn", "detach":
		spawn(st.arg, st.verb == "detach")
	case "stderr":
		fmt.Fprintln(os.Stderr, st.arg)
	case "close":
		os.Stdout.Close()
	case "exit":
		os.Exit(number(st.arg))
	case "default":
		return false
	default:
		must(fmt.Errorf("script: unknown step %q", st.verb))
	}
	return true
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	must(err)
	return n
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

// spawn starts a grandchild that holds our pipes open, and writes its pid.
func spawn(file string, detach bool) {
	exe, err := os.Executable()
	must(err)
	cmd := exec.Command(exe, "-mode", "sleep", "-record", file) // the file only shows who it is
	if detach {
		cmd.Args = append(cmd.Args, "-stubborn")
		cmd.SysProcAttr = detached()
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	must(cmd.Start())
	temp := file + ".part"
	must(os.WriteFile(temp, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600))
	must(os.Rename(temp, file))
}
