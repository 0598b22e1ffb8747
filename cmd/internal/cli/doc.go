// Package cli is the command line of tool-guardian: one file per command,
// the exit codes, and what goes to which stream.
//
// It guarantees that data goes to stdout and everything else (progress,
// hints, prompts) to stderr, that colour and progress appear only on a
// terminal, and that the exit code is one of [Code]. It holds no logic of the
// product: each command parses, calls a package and prints.
package cli
