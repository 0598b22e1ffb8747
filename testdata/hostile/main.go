// Command hostile is an MCP server for tests. By itself it is a polite one; a
// script makes it do what real servers were seen to do wrong.
//
//	hostile [-mode MODE] [-e SCRIPT | -script FILE] [-record FILE]
//
// Modes:
//
//	serve      answers initialize and server/discover (default)
//	stateful   refuses server/discover
//	stateless  refuses initialize, and requests without the _meta envelope
//	echo       serve, with the arguments of any tool as its result
//	silent     reads and never answers
//	deaf       neither reads nor answers
//	sleep      no server at all: what a server may leave behind
//
// A script is lines. `start` or `on METHOD [NAME]` opens a block, where NAME is
// the params' name or cursor; the lines after it run when such a message
// comes, in place of the usual answer:
//
//	> TEXT         write a line; $ID $TOKEN $ARGS stand for the request's own,
//	               $COUNT for a number that never comes twice
//	raw TEXT       the same without a newline
//	big N          a result with N bytes of text
//	deep N         a result nested N deep
//	sleep 50ms     wait
//	wait METHOD    wait until such a message has come
//	once FILE      go on if FILE is absent, and make it; else answer as usual
//	spawn FILE     start a grandchild and write its pid to FILE
//	detach FILE    the same, in a session of its own and deaf to TERM
//	stderr TEXT    write to stderr
//	close          close stdout
//	exit N         end
//	default        answer as usual
package main

import (
	"bufio"
	"flag"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	mode := flag.String("mode", "serve", "what to be")
	text := flag.String("e", "", "script")
	file := flag.String("script", "", "script file")
	record := flag.String("record", "", "file that every received line is appended to")
	stubborn := flag.Bool("stubborn", false, "ignore TERM and the end of input")
	flag.Parse()
	if *stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	}
	if *mode != "sleep" && *mode != "deaf" {
		must(run(*mode, *text, *file, *record))
	}
	for *mode == "sleep" || *mode == "deaf" || *stubborn {
		time.Sleep(time.Hour)
	}
}

func run(mode, text, file, record string) error {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text = string(b)
	}
	blocks, err := parse(text)
	if err != nil {
		return err
	}
	s := &server{mode: mode, blocks: blocks, heard: map[string]chan struct{}{}}
	if record != "" {
		s.record, err = os.OpenFile(record, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
	}
	s.play(block{key: "start"}, message{})
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			s.receive(line)
		}
		if err != nil {
			return nil
		}
	}
}
