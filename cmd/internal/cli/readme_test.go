package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every command line in the README must be one that the program takes.
func TestReadmeCommandsExist(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for i, block := range strings.Split(string(b), "```") {
		lines, isShell := strings.CutPrefix(block, "sh\n")
		if i%2 == 0 || !isShell {
			continue
		}
		for line := range strings.Lines(lines) {
			words := strings.Fields(line)
			switch {
			case len(words) > 0 && words[0] == "tool-guardian":
				words = words[1:]
			case strings.HasPrefix(line, "go run ./cmd/tool-guardian "):
				words = words[3:]
			default:
				continue
			}
			seen++
			root := (&app{Streams: System()}).root()
			c, rest, err := root.Find(words)
			if err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(line), err)
				continue
			}
			if err := c.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(line), err)
				continue
			}
			if err := c.ValidateArgs(c.Flags().Args()); err != nil {
				t.Errorf("%s: %v", strings.TrimSpace(line), err)
			}
			if !c.Runnable() {
				t.Errorf("%s: is no command", strings.TrimSpace(line))
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d command lines were found in the README", seen)
	}
}
