package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"toolguardian/cmd/internal/cli"
)

// The examples use no flag that witness serve does not have.
func TestExamplesUseRealFlags(t *testing.T) {
	var help bytes.Buffer
	cli.Main([]string{"witness", "serve", "--help"}, cli.Streams{In: strings.NewReader(""), Out: &help, Err: &help, Now: time.Now,
		Getenv: func(string) string { return "" }, Environ: func() []string { return nil }})
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	for file, line := range map[string]*regexp.Regexp{
		"tool-guardian-witness.service": regexp.MustCompile(`(?s)ExecStart=(.*?[^\\])\n`),
		"Containerfile":                 regexp.MustCompile(`CMD (\[.*\])`),
	} {
		b, err := os.ReadFile(filepath.Join("examples", file))
		if err != nil {
			t.Fatal(err)
		}
		command := line.FindSubmatch(b)
		if command == nil {
			t.Fatalf("%s starts nothing", file)
		}
		words := flag.FindAllString(string(command[1]), -1)
		if len(words) < 3 {
			t.Errorf("%s has the flags %v only", file, words)
		}
		for _, w := range words {
			if !strings.Contains(help.String(), w+" ") {
				t.Errorf("%s uses %s, which witness serve does not have", file, w)
			}
		}
	}
}
