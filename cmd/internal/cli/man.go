package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "Print the manual page, for man(1)", Args: cobra.NoArgs,
		Long: "Print the manual page in roff: tool-guardian man > ~/.local/share/man/man1/tool-guardian.1",
		RunE: func(c *cobra.Command, _ []string) error {
			p := manual{w: a.Out}
			p.page(c.Root())
			return p.err
		},
	}
}

// manual writes roff (man(7)). The first error stays.
type manual struct {
	w   io.Writer
	err error
}

func (m *manual) raw(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format, args...)
	}
}

// text writes words that roff must take as they stand: a line may not begin
// with a control character, and a backslash begins an escape.
func (m *manual) text(s string) {
	for line := range strings.Lines(strings.TrimSpace(s) + "\n") {
		line = plain(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		m.raw("%s", line)
	}
}

func plain(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
}

func (m *manual) section(name string) { m.raw(".SH %s\n", name) }

func (m *manual) page(root *cobra.Command) {
	m.raw(".TH TOOL-GUARDIAN 1 \"\" \"tool-guardian %s\" \"User Commands\"\n", Version)
	m.section("NAME")
	m.text(root.Name() + " - " + lowerFirst(root.Short))
	m.section("SYNOPSIS")
	m.text(root.Name() + " [flags]\n")
	m.raw(".br\n")
	m.text(root.Name() + " COMMAND [words] [flags]")
	m.section("DESCRIPTION")
	m.text(root.Long)
	m.section("FLAGS")
	m.flags(root.Flags())
	m.section("COMMANDS")
	m.commands(root)
	m.section("EXIT STATUS")
	m.text("0 done, or a verdict of PASS; 1 failed, or FAIL; 2 INCOMPLETE or UNPINNED; 3 the words of the call, or a file they name, are wrong.")
	m.section("FILES")
	m.text("~/.tool-guardian ($TOOL_GUARDIAN_HOME): mcp.json, policy.json, state.json, calls.jsonl, spill and evidence.")
}

// commands writes every command that does something, deepest names in full.
func (m *manual) commands(c *cobra.Command) {
	for _, sub := range c.Commands() {
		if sub.Hidden || !sub.IsAvailableCommand() && !sub.HasSubCommands() {
			continue
		}
		if sub.HasAvailableSubCommands() {
			m.commands(sub)
			continue
		}
		m.raw(".SS ")
		m.text(sub.UseLine())
		about := sub.Long
		if about == "" {
			about = sub.Short + "."
		}
		m.text(about)
		m.flags(sub.LocalFlags())
	}
}

func (m *manual) flags(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		m.raw(".TP\n")
		m.text(strings.TrimSpace("--" + f.Name + " " + value))
		m.text(usage)
	})
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
