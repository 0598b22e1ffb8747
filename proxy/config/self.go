package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// selfNames recognises entries that would start this router again, which is
// what a client's own config holds.
type selfNames struct{ real string }

func newSelf(path string) selfNames {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return selfNames{path}
}

// The product by name, alone or with a version: tool-guardian@1.2, ==1.2.
var productRE = regexp.MustCompile(`^tool[-_]guardian(?:[@=<>~!\[].*)?$`)

// Programs that run a package named by their first plain argument.
var runners = []string{"npx", "bunx", "pnpx", "pnpm", "npm", "yarn", "bun", "uvx", "uv", "pipx", "python", "python3", "py"}

// Words of the runners that stand before the package, and flags that take a
// value.
var (
	runnerWords = []string{"run", "tool", "exec", "dlx", "x"}
	valueFlags  = []string{"--from", "--python", "--with", "-p", "--package", "--spec"}
)

// ownServers are the subcommands that are MCP servers and no routers.
var ownServers = []string{"files", "bench"}

func (d *document) onlySelf(s selfNames) bool {
	for _, e := range d.entries {
		if !e.isSelf(s) {
			return false
		}
	}
	return len(d.entries) > 0
}

func (e entry) isSelf(s selfNames) bool {
	if e.Command == "" {
		return false
	}
	base := program(e.Command)
	if base == "tool-guardian" || s.same(e.Command) {
		return len(e.Args) == 0 || !slices.Contains(ownServers, e.Args[0])
	}
	return slices.Contains(runners, base) && productRE.MatchString(firstPackage(e.Args))
}

// program is a command's name without folder and Windows ending.
func program(command string) string {
	base := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	for _, ending := range []string{".exe", ".cmd", ".bat"} {
		base = strings.TrimSuffix(base, ending)
	}
	return base
}

func (s selfNames) same(command string) bool {
	if s.real == "" || !filepath.IsAbs(command) {
		return false
	}
	a, err := os.Stat(command)
	if err != nil {
		return false
	}
	b, err := os.Stat(s.real)
	return err == nil && os.SameFile(a, b)
}

// firstPackage is what a runner runs: the first argument that is neither a
// flag, nor a flag's value, nor one of its own words; or what follows -m.
func firstPackage(args []string) string {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "-m" && i+1 < len(args):
			return args[i+1]
		case slices.Contains(valueFlags, a):
			i++
		case strings.HasPrefix(a, "-") || slices.Contains(runnerWords, a):
		default:
			return a
		}
	}
	return ""
}
