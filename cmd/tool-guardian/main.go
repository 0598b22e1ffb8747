// Command tool-guardian routes an agent's tool calls and proves what happened.
package main

import (
	"os"

	"toolguardian/cmd/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], cli.System())) }
