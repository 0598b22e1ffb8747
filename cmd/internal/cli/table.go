package cli

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// tabular collects rows and prints them aligned.
type tabular struct{ w table.Writer }

// table begins a table on stdout with these column heads.
func (a *app) table(heads ...string) tabular {
	return newTable(a.Out, heads...)
}

func newTable(out io.Writer, heads ...string) tabular {
	w := table.NewWriter()
	w.SetOutputMirror(out)
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	w.SetStyle(style)
	row := make(table.Row, len(heads))
	for i, h := range heads {
		row[i] = h
	}
	w.AppendHeader(row)
	return tabular{w}
}

func (t tabular) row(cells ...any) { t.w.AppendRow(table.Row(cells)) }

func (t tabular) flush() { t.w.Render() }
