package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// aliases are the reference's root flags. Each stands for a command.
type aliases struct {
	selftest, usage, skills bool
	since                   string
}

// later are root flags of commands that this version does not have. They are
// answered, since a script that passes one waits for what it does.
var later = []string{"policy-check", "bypass-summary", "hook-pretooluse", "prove"}

// laterWords are the flags that only belong to one of those.
var laterWords = []string{"list", "mode", "rules", "session", "since-hours"}

func (s *aliases) flags(f *pflag.FlagSet) {
	f.BoolVar(&s.selftest, "selftest", false, "the same as the command selftest")
	f.BoolVar(&s.usage, "usage", false, "the same as the command usage")
	f.StringVar(&s.since, "since", "", "of --usage: only the last 7d, 24h, …")
	f.BoolVar(&s.skills, "skills-report", false, "print what loading every skill up front would cost")
	for _, name := range later {
		f.Bool(name, false, "not in this version")
		must(f.MarkHidden(name))
	}
	for _, name := range laterWords {
		f.String(name, "", "not in this version")
		must(f.MarkHidden(name))
		f.Lookup(name).NoOptDefVal = " "
	}
}

// args judges the words after the flags: only commands of other versions take
// some.
func (s *aliases) args(c *cobra.Command, args []string) error {
	if s.missing(c) != "" {
		return nil
	}
	err := cobra.NoArgs(c, args)
	if err == nil {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}

// missing is the flag of a command that this version does not have.
func (s *aliases) missing(c *cobra.Command) string {
	i := slices.IndexFunc(later, c.Flags().Changed)
	if i < 0 {
		return ""
	}
	return later[i]
}

// alias runs the command that a flag stands for; false where none is given.
func (a *app) alias(ctx context.Context, c *cobra.Command, s *aliases, o routeOptions) (ran bool, err error) {
	if name := s.missing(c); name != "" {
		return true, fmt.Errorf("--%s is not in this version: nothing was checked, recorded or run", name)
	}
	if i := slices.IndexFunc(laterWords, c.Flags().Changed); i >= 0 {
		return true, usagef("--%s belongs to one of --%s, and none was given", laterWords[i], strings.Join(later, ", --"))
	}
	if s.since != "" && !s.usage {
		return true, usagef("--since belongs to --usage")
	}
	switch {
	case s.selftest:
		return true, a.selftest(ctx, o)
	case s.usage:
		return true, a.usage(o, s.since)
	case s.skills:
		return true, a.skillsReport(o)
	}
	return false, nil
}
