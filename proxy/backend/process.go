package backend

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// process is a running server as the router holds it: our ends of its pipes.
type process struct {
	pid    int
	stdin  *os.File
	stdout *os.File
	stderr *os.File

	exited chan struct{} // closed when it ended; exit is set before
	exit   Exit
	stop   func() // asks for TERM, two seconds, KILL of the group; returns at once

	// closing is called before the server is asked to end by itself, so that
	// what it started can still be found afterwards.
	closing func()
}

// closePipes gives our ends back. A server that reads sees the end of input.
func (p *process) closePipes() {
	p.stdin.Close()
	p.stdout.Close()
	p.stderr.Close()
}

// lookPath finds the command the way the backend's own environment would: a
// name is searched in that PATH, anything with a separator is a path from dir.
func lookPath(command, dir string, env []string) (string, error) {
	if command == "" {
		return "", fmt.Errorf("no command is configured; set \"command\" in its entry")
	}
	if strings.ContainsRune(command, filepath.Separator) {
		return absolute(command, dir), checkExecutable(absolute(command, dir))
	}
	folders := filepath.SplitList(getenv(env, "PATH"))
	for _, folder := range folders {
		if folder == "" {
			continue
		}
		full := filepath.Join(absolute(folder, dir), command)
		if checkExecutable(full) == nil {
			return full, nil
		}
	}
	return "", fmt.Errorf("command %q was not found in PATH (%d folders); install it or write its full path", command, len(folders))
}

func absolute(path, dir string) string {
	if filepath.IsAbs(path) || dir == "" {
		return path
	}
	return filepath.Join(dir, path)
}

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("command cannot be run: %w", err)
	case info.IsDir():
		return fmt.Errorf("command cannot be run: %s is a folder", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("command cannot be run: %s is not executable; chmod +x it", path)
	}
	return nil
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("its folder cannot be used: %w; correct \"cwd\"", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("its folder cannot be used: %s is a file; correct \"cwd\"", dir)
	}
	return nil
}

// getenv returns the last value, which is the one a C program sees set last.
func getenv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}
