package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// page writes a report for people: aligned columns, then the aims.
type page struct{ w *tabwriter.Writer }

func newPage(w io.Writer, m Machine, what string) page {
	p := page{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	p.line("%s\non %s/%s, %d cores, %s\n", what, m.OS, m.Arch, m.Cores, m.Go)
	return p
}

func (p page) line(format string, args ...any) { fmt.Fprintf(p.w, format+"\n", args...) }

func (p page) heads(first string) { p.line("%s\tp50 µs\tp99 µs\tper second\tcount", first) }

func (p page) figure(name string, f Figure) {
	p.line("%s\t%.1f\t%.1f\t%v\t%d", name, f.P50, f.P99, f.PerSecond, f.Count)
}

func (p page) aims(aims []Aim) error {
	p.line("")
	for _, a := range aims {
		p.line("%s", a)
	}
	return p.w.Flush()
}

// WriteText renders the report for people.
func (r CallsReport) WriteText(w io.Writer) error {
	p := newPage(w, r.Machine, "tool calls: straight to an echo server, and through the router\n"+
		"direct is a whole MCP server, made of the same parts as the router, that gives a text back")
	for _, c := range r.Cases {
		p.heads(fmt.Sprintf("%d bytes, callers: %d", c.Payload, c.Callers))
		p.figure("direct", c.Direct)
		p.figure("a process that only copies", c.Relay)
		p.figure("router, evidence off", c.Off)
		p.figure("router, evidence on", c.On)
		p.line("")
	}
	p.heads("beside them")
	p.figure("4 KiB made durable", r.Flush)
	for _, c := range r.Chain {
		p.figure(fmt.Sprintf("receipts of a call, callers: %d", c.Callers), c.Call)
	}
	p.line("")
	for _, c := range r.Chain {
		p.line("waits for the disk a call, callers: %d\t%v", c.Callers, c.Waits)
	}
	for _, m := range r.Routers {
		p.line("memory of the router, evidence %s\t%.1f MB, at most %.1f MB", m.Evidence, megabytes(m.KiB), megabytes(m.PeakKiB))
	}
	return p.aims(r.Aims)
}

// WriteText renders the report for people.
func (r WitnessReport) WriteText(w io.Writer) error {
	p := newPage(w, r.Machine, "heads: pre-signed chains against a witness and its store")
	p.heads("heads")
	p.figure(fmt.Sprintf("in process, writers: %d", r.Writers), r.Many)
	p.figure("in process, writers: 1", r.One)
	p.figure(fmt.Sprintf("over HTTP, writers: %d", r.Writers), r.HTTP)
	p.figure("over HTTP, writers: 1", r.HTTPOne)
	if r.Origins > 0 {
		p.figure(fmt.Sprintf("over HTTP, origins with a head a second: %d", r.Origins), r.Load)
	}
	if r.Log.Leaves > 0 {
		p.line("")
		p.heads(fmt.Sprintf("proofs by the handler in a log of %d heads, which opened in %.1f ms", r.Log.Leaves, r.Log.OpenedIn/1e3))
		p.figure("of the newest 100,000", r.Log.Recent)
		p.figure("of any", r.Log.Anywhere)
	}
	p.line("")
	p.heads("beside them")
	p.figure("4 KiB made durable", r.Flush)
	p.figure("Ed25519 sign", r.Sign)
	p.figure("Ed25519 verify", r.Verify)
	p.figure("both, on two cores", r.Pairs)
	return p.aims(r.Aims)
}

// WriteText renders the report for people.
func (r VerifyReport) WriteText(w io.Writer) error {
	p := newPage(w, r.Machine, "verify: a generated chain, witnessed and timestamped")
	p.line("receipts\t%d, %.1f MB", r.Receipts, float64(r.Bytes)/1e6)
	p.line("verdict\t%s in %v s", r.Verdict, r.Seconds)
	p.line("receipts/s\t%v", r.PerSecond)
	p.line("SHA-256 and Ed25519 alone\t%v/s: verify takes %v times that", r.PurePerSecond, r.TimesPure)
	p.line("peak memory\t%.1f MB", megabytes(r.PeakKiB))
	return p.aims(r.Aims)
}

func megabytes(kib int64) float64 { return float64(kib) * 1024 / 1e6 }
