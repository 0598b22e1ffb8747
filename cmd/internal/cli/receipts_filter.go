package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/receipts"
)

// record is one receipt, decoded for people and for other systems. Nothing of it
// is verified.
type record struct {
	entry
	At           time.Time // of the receipt's own clock; zero where it cannot be read
	ID, Origin   string
	Server, Tool string
	Call         string // pairs a decision with its outcome
	Line         []byte
	Statement    *receipts.Statement // nil: unreadable
}

func readRecord(line chain.Line) record {
	r := record{entry: readEntry(line), Line: line.Bytes}
	st, err := parseLine(line.Bytes)
	if err != nil {
		return r
	}
	r.Statement, r.ID, r.Origin = st, st.Text("id"), st.Origin
	r.Server, r.Tool, r.Call = st.Text("call", "server"), st.Text("call", "tool"), st.Text("call", "id")
	r.At, _ = time.Parse(time.RFC3339Nano, r.Time)
	return r
}

// filter chooses receipts; what is empty chooses all.
type filter struct {
	since, until                        string
	server, tool, status, session, kind string

	from, to time.Time
}

func (f *filter) flags(c *cobra.Command) *cobra.Command {
	for _, flag := range []struct {
		to          *string
		name, usage string
	}{
		{&f.since, "since", "from this time on: RFC 3339, a date, or an age such as 24h"},
		{&f.until, "until", "before this time"},
		{&f.server, "server", "calls of this server"},
		{&f.tool, "tool", "calls of this tool"},
		{&f.status, "status", "with this result, such as ok, tool_error, deny, timeout"},
		{&f.session, "session", "of this session"},
		{&f.kind, "kind", "of this kind, such as decision or outcome"},
	} {
		c.Flags().StringVar(flag.to, flag.name, "", flag.usage)
	}
	return c
}

// parse reads the times.
func (f *filter) parse(now time.Time) error {
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{{"--since", f.since, &f.from}, {"--until", f.until, &f.to}} {
		if t.text == "" {
			continue
		}
		at, err := parseMoment(t.text, now)
		if err != nil {
			return usagef("%s %q: want 2026-01-31T12:00:00Z, 2026-01-31 or an age such as 24h", t.name, t.text)
		}
		*t.to = at
	}
	return nil
}

func parseMoment(s string, now time.Time) (time.Time, error) {
	if age, err := time.ParseDuration(s); err == nil {
		return now.Add(-age), nil
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	return time.ParseInLocation(time.DateOnly, s, time.Local)
}

func (f *filter) matches(r record) bool {
	for _, m := range [][2]string{{f.server, r.Server}, {f.tool, r.Tool}, {f.status, r.Result}, {f.session, r.Session}, {f.kind, r.Kind}} {
		if m[0] != "" && m[0] != m[1] {
			return false
		}
	}
	return (f.from.IsZero() || !r.At.Before(f.from)) && (f.to.IsZero() || !r.At.IsZero() && r.At.Before(f.to))
}

// each calls take with the receipts from seq from on that the filter chooses.
func (f *filter) each(r *chain.Reader, from uint64, take func(record) error) error {
	for line, err := range r.Lines(from) {
		if err != nil {
			return err
		}
		if rec := readRecord(line); f.matches(rec) {
			if err := take(rec); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *app) receiptsGrep() *cobra.Command {
	var f chainFlag
	var sel filter
	return sel.flags(f.flags(&cobra.Command{
		Use: "grep PATTERN", Short: "List the receipts whose content matches a regular expression", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			re, err := regexp.Compile(args[0])
			if err != nil {
				return usagef("%q: %v", args[0], err)
			}
			if err := sel.parse(a.Now()); err != nil {
				return err
			}
			return a.read(f, func(r *chain.Reader) error {
				l := a.newList()
				err := sel.each(r, 0, func(rec record) error {
					if rec.Statement != nil && re.Match(rec.Statement.Raw) {
						l.add(rec.entry)
					}
					return nil
				})
				l.flush()
				if err == nil && l.rows == 0 {
					return &exitError{Failed, errors.New("no receipt matches; arguments and results do not stand in receipts")}
				}
				return err
			})
		},
	}))
}

// followEvery is how often tail looks for new receipts.
const followEvery = 200 * time.Millisecond

func (a *app) receiptsTail() *cobra.Command {
	var f chainFlag
	var sel filter
	var last uint64
	var follow bool
	c := sel.flags(f.flags(&cobra.Command{
		Use: "tail", Short: "Show the newest receipts, and with -f those that come", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := sel.parse(a.Now()); err != nil {
				return err
			}
			return a.tail(c.Context(), f, sel, last, follow)
		},
	}))
	c.Flags().Uint64VarP(&last, "last", "n", 10, "how many to begin with")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with new receipts until interrupted")
	return c
}

func (a *app) tail(ctx context.Context, f chainFlag, sel filter, last uint64, follow bool) error {
	next, err := a.tailStart(f, last)
	for err == nil {
		err = a.read(f, func(r *chain.Reader) error {
			for line, err := range r.Lines(next) {
				if err != nil {
					return err
				}
				if follow && line.Torn {
					return nil // on its way, or a crash's: the next look tells
				}
				next = line.Seq + 1
				if rec := readRecord(line); sel.matches(rec) {
					a.printRow(rec.entry)
				}
			}
			return nil
		})
		if follow && errors.Is(err, chain.ErrChanged) {
			err = nil
		}
		if err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
	}
	return err
}

func (a *app) tailStart(f chainFlag, last uint64) (next uint64, err error) {
	err = a.read(f, func(r *chain.Reader) error {
		size, err := r.Size()
		next = size - min(size, last)
		return err
	})
	return next, err
}

// brief is what a receipt is about, for a line of a terminal: of a key, the name
// shortened and the ID. receipts show and --json have it whole.
func brief(e entry) string {
	switch receipts.Kind(e.Kind) {
	case receipts.KindGenesis, receipts.KindSuccessor, receipts.KindRotation:
	default:
		return e.What
	}
	k, err := tlog.ParseVkey(e.What)
	if err != nil {
		return e.What
	}
	const most = 26
	name := []rune(k.Name)
	if len(name) > most {
		name = append(name[:most-1], '…')
	}
	return fmt.Sprintf("%s+%08x", string(name), k.ID)
}

// printRow prints a receipt by itself, where no table can be awaited.
func (a *app) printRow(e entry) {
	if a.json {
		a.printEntry(e)
		return
	}
	a.print("%7d  %s  %-13s  %-30s  %s\n", e.Seq, toSeconds(e.Time), e.Kind, brief(e), e.Result)
}

// list prints receipts as a table, or for machines a line each.
type list struct {
	a    *app
	t    tabular
	rows int
}

func (a *app) newList() *list {
	return &list{a: a, t: a.table("seq", "time", "kind", "what", "result")}
}

func (l *list) add(e entry) {
	l.rows++
	if l.a.json {
		l.a.printEntry(e)
		return
	}
	l.t.row(e.Seq, toSeconds(e.Time), e.Kind, brief(e), e.Result)
}

func (l *list) flush() {
	if !l.a.json {
		l.t.flush()
	}
}
