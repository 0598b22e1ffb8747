package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
)

// exporter writes receipts in one format. close ends what needs an end.
type exporter interface {
	write(record) error
	close() error
}

var exportFormats = []string{"jsonl", "csv", "cloudevents", "otlp", "cef", "syslog"}

func (a *app) receiptsExport() *cobra.Command {
	var f chainFlag
	var sel filter
	var format, out, to string
	c := sel.flags(f.flags(&cobra.Command{
		Use:   "export --format " + strings.Join(exportFormats, "|"),
		Short: "Write receipts for other systems; an export is no evidence",
		Long: "Write receipts in another system's format. Whoever reads them there cannot check them: evidence is the\n" +
			"chain itself, or receipts proof. Arguments and results do not stand in receipts, so no export has them.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := sel.parse(a.Now()); err != nil {
				return err
			}
			return a.export(c.Context(), f, sel, format, out, to)
		},
	}))
	c.Flags().StringVar(&format, "format", "jsonl", strings.Join(exportFormats, ", "))
	c.Flags().StringVarP(&out, "out", "o", "", "the file to write (default stdout)")
	c.Flags().StringVar(&to, "to", "", "for otlp: an OTLP/HTTP endpoint on this machine, such as http://127.0.0.1:4318")
	c.MarkFlagsMutuallyExclusive("out", "to")
	return c
}

func (a *app) export(ctx context.Context, f chainFlag, sel filter, format, out, to string) error {
	if !slices.Contains(exportFormats, format) {
		return usagef("--format %q: known are %s", format, strings.Join(exportFormats, ", "))
	}
	if to != "" {
		if format != "otlp" {
			return usagef("--to goes with --format otlp")
		}
		endpoint, err := loopback(to)
		if err != nil {
			return err
		}
		return a.exportTo(f, sel, &otlpExporter{now: a.Now, send: func(b []byte) error { return post(ctx, endpoint, b) }})
	}
	if out == "" {
		return a.exportTo(f, sel, newExporter(format, a.Out, a.Now))
	}
	file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := a.exportTo(f, sel, newExporter(format, file, a.Now)); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

func (a *app) exportTo(f chainFlag, sel filter, e exporter) error {
	return a.read(f, func(r *chain.Reader) error {
		if err := sel.each(r, 0, e.write); err != nil {
			return err
		}
		return e.close()
	})
}

func newExporter(format string, w io.Writer, now func() time.Time) exporter {
	switch format {
	case "csv":
		return &csvExporter{w: csv.NewWriter(w)}
	case "cloudevents":
		return lines{w, cloudEvent}
	case "otlp":
		return &otlpExporter{now: now, send: func(b []byte) error { _, err := w.Write(append(b, '\n')); return err }}
	case "cef":
		return lines{w, cefLine}
	case "syslog":
		return lines{w, syslogLine}
	}
	return lines{w, jsonLine}
}

// lines is a format with one line for each receipt.
type lines struct {
	w    io.Writer
	form func(record) ([]byte, error)
}

func (l lines) write(r record) error {
	b, err := l.form(r)
	if err == nil {
		_, err = l.w.Write(append(b, '\n'))
	}
	return err
}

func (l lines) close() error { return nil }

// payload is what a receipt states, as the chain has it; null if unreadable.
func (r record) payload() json.RawMessage {
	if r.Statement == nil {
		return json.RawMessage("null")
	}
	var b bytes.Buffer
	if err := json.Compact(&b, r.Statement.Raw); err != nil {
		return json.RawMessage("null")
	}
	return b.Bytes()
}

func jsonLine(r record) ([]byte, error) {
	return json.Marshal(struct {
		entry
		LeafHash  string          `json:"leafHash"` // to find the receipt again
		Statement json.RawMessage `json:"statement"`
	}{r.entry, tlog.LeafHash(r.Line).Hex(), r.payload()})
}

// cloudEvent is CloudEvents 1.0 in structured JSON.
func cloudEvent(r record) ([]byte, error) {
	type event struct {
		SpecVersion string          `json:"specversion"`
		ID          string          `json:"id"`
		Source      string          `json:"source"`
		Type        string          `json:"type"`
		Subject     string          `json:"subject,omitempty"`
		Time        string          `json:"time,omitempty"`
		ContentType string          `json:"datacontenttype"`
		Data        json.RawMessage `json:"data"`
	}
	e := event{"1.0", r.ID, "//" + r.Origin, "tool-guardian.receipt." + r.Kind, r.What, r.Time, "application/json", r.payload()}
	if e.ID == "" {
		e.ID = strconv.FormatUint(r.Seq, 10)
	}
	return json.Marshal(e)
}

type csvExporter struct {
	w     *csv.Writer
	begun bool
}

func (c *csvExporter) begin() error {
	if c.begun {
		return nil
	}
	c.begun = true
	return c.w.Write([]string{"seq", "time", "kind", "session", "server", "tool", "call", "result", "id", "origin", "leaf_hash"})
}

func (c *csvExporter) write(r record) error {
	if err := c.begin(); err != nil {
		return err
	}
	row := []string{strconv.FormatUint(r.Seq, 10), r.Time, r.Kind, r.Session, r.Server, r.Tool, r.Call, r.Result, r.ID, r.Origin, tlog.LeafHash(r.Line).Hex()}
	for i, cell := range row {
		row[i] = harmless(cell)
	}
	return c.w.Write(row)
}

func (c *csvExporter) close() error {
	if err := c.begin(); err != nil {
		return err
	}
	c.w.Flush()
	return c.w.Error()
}

// harmless keeps a spreadsheet from taking another's text for a formula.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// severity is 0 for what went well, 1 for what did not, 2 for what speaks of
// the evidence itself.
func (r record) severity() int {
	switch {
	case r.Statement == nil, r.Kind == "gap", r.Kind == "recovered", r.Kind == "successor", r.Kind == "erasure":
		return 2
	case r.Kind == "denied", r.Kind == "refused", r.Kind == "outcome" && r.Result != "ok":
		return 1
	}
	return 0
}

// cefLine is ArcSight's Common Event Format, version 0.
func cefLine(r record) ([]byte, error) {
	head := strings.NewReplacer(`\`, `\\`, `|`, `\|`, "\n", " ", "\r", " ")
	ext := strings.NewReplacer(`\`, `\\`, `=`, `\=`, "\n", `\n`, "\r", `\r`)
	name := r.Kind
	if r.What != "" {
		name += " " + r.What
	}
	var b strings.Builder
	fmt.Fprintf(&b, "CEF:0|Tool Guardian|tool-guardian|%s|%s|%s|%d|", head.Replace(Version), head.Replace(r.Kind), head.Replace(name), [...]int{2, 5, 7}[r.severity()])
	if !r.At.IsZero() {
		fmt.Fprintf(&b, "rt=%d ", r.At.UnixMilli())
	}
	fmt.Fprintf(&b, "cn1=%d cn1Label=seq", r.Seq)
	for _, kv := range [][2]string{{"externalId", r.ID}, {"outcome", r.Result}, {"destinationServiceName", r.Server}, {"act", r.Tool},
		{"cs1", r.Session}, {"cs2", r.Origin}, {"cs3", r.Call}} {
		if kv[1] == "" {
			continue
		}
		fmt.Fprintf(&b, " %s=%s", kv[0], ext.Replace(kv[1]))
		if label := map[string]string{"cs1": "session", "cs2": "origin", "cs3": "call"}[kv[0]]; label != "" {
			fmt.Fprintf(&b, " %sLabel=%s", kv[0], label)
		}
	}
	return []byte(b.String()), nil
}

// syslogLine is RFC 5424, facility local0; 32473 is the number that RFC 5612
// keeps for use without an assignment.
func syslogLine(r record) ([]byte, error) {
	at := "-"
	if !r.At.IsZero() {
		at = r.At.UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `]`, `\]`, "\n", " ", "\r", " ")
	var b strings.Builder
	fmt.Fprintf(&b, "<%d>1 %s - tool-guardian - %s [receipt@32473 seq=\"%d\"", 16*8+[...]int{6, 4, 3}[r.severity()], at, messageID(r.Kind), r.Seq)
	for _, kv := range [][2]string{{"id", r.ID}, {"session", r.Session}, {"server", r.Server}, {"tool", r.Tool}, {"call", r.Call}, {"result", r.Result}, {"origin", r.Origin}} {
		if kv[1] != "" {
			fmt.Fprintf(&b, " %s=\"%s\"", kv[0], value.Replace(kv[1]))
		}
	}
	fmt.Fprintf(&b, "] %s", strings.Map(printable, strings.TrimSpace(strings.Join([]string{r.Kind, r.What, r.Result}, " "))))
	return []byte(b.String()), nil
}

// messageID is 1 to 32 printable ASCII characters (RFC 5424 section 6.2.7).
func messageID(kind string) string {
	id := strings.Map(func(c rune) rune {
		if c > ' ' && c < 0x7f {
			return c
		}
		return '_'
	}, kind)
	if id == "" {
		return "-"
	}
	return id[:min(len(id), 32)]
}

func printable(c rune) rune {
	if c < ' ' || c == 0x7f {
		return ' '
	}
	return c
}

// otlpBatch bounds one request.
const otlpBatch = 512

// otlpExporter makes OTLP/JSON log requests of a batch each.
type otlpExporter struct {
	now   func() time.Time
	send  func([]byte) error
	batch []otlpRecord
}

type otlpValue struct {
	String string `json:"stringValue"`
}

type otlpAttribute struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpRecord struct {
	Time       string          `json:"timeUnixNano,omitempty"`
	Observed   string          `json:"observedTimeUnixNano"`
	Severity   int             `json:"severityNumber"`
	Text       string          `json:"severityText"`
	Body       otlpValue       `json:"body"`
	Attributes []otlpAttribute `json:"attributes"`
	TraceID    string          `json:"traceId,omitempty"`
	SpanID     string          `json:"spanId,omitempty"`
}

func (o *otlpExporter) write(r record) error {
	level := r.severity()
	rec := otlpRecord{Observed: strconv.FormatInt(o.now().UnixNano(), 10), Severity: [...]int{9, 13, 17}[level], Text: [...]string{"INFO", "WARN", "ERROR"}[level],
		Body: otlpValue{string(r.payload())}}
	if !r.At.IsZero() {
		rec.Time = strconv.FormatInt(r.At.UnixNano(), 10)
	}
	for _, kv := range [][2]string{{"receipt.seq", strconv.FormatUint(r.Seq, 10)}, {"receipt.kind", r.Kind}, {"receipt.id", r.ID}, {"receipt.origin", r.Origin},
		{"receipt.result", r.Result}, {"session.id", r.Session}, {"mcp.server", r.Server}, {"mcp.tool", r.Tool}, {"receipt.call", r.Call}} {
		if kv[1] != "" {
			rec.Attributes = append(rec.Attributes, otlpAttribute{kv[0], otlpValue{kv[1]}})
		}
	}
	rec.TraceID, rec.SpanID = traceOf(r)
	if o.batch = append(o.batch, rec); len(o.batch) < otlpBatch {
		return nil
	}
	return o.close()
}

// traceOf takes the ids of a W3C traceparent.
func traceOf(r record) (trace, span string) {
	if r.Statement == nil {
		return "", ""
	}
	parts := strings.Split(r.Statement.Text("traceparent"), "-")
	if len(parts) != 4 || !isHex(parts[1], 16) || !isHex(parts[2], 8) {
		return "", ""
	}
	return parts[1], parts[2]
}

func isHex(s string, n int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == n
}

// close sends what is left.
func (o *otlpExporter) close() error {
	if len(o.batch) == 0 {
		return nil
	}
	type scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	type scopeLogs struct {
		Scope   scope        `json:"scope"`
		Records []otlpRecord `json:"logRecords"`
	}
	type resource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	type resourceLogs struct {
		Resource resource    `json:"resource"`
		Scopes   []scopeLogs `json:"scopeLogs"`
	}
	b, err := json.Marshal(struct {
		Logs []resourceLogs `json:"resourceLogs"`
	}{[]resourceLogs{{resource{[]otlpAttribute{{"service.name", otlpValue{"tool-guardian"}}}},
		[]scopeLogs{{scope{"tool-guardian", Version}, o.batch}}}}})
	o.batch = nil
	if err != nil {
		return err
	}
	return o.send(b)
}

// loopback takes an address on this machine alone: receipts name tools and
// sessions, and where they go from here is another program's part.
func loopback(to string) (string, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return "", usagef("--to %q: want http://127.0.0.1:4318", to)
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", usagef("--to %s is not this machine: run a collector here, or write a file", to)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/logs"
	}
	return u.String(), nil
}

func post(ctx context.Context, endpoint string, b []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		why, _ := io.ReadAll(io.LimitReader(res.Body, 512))
		return fmt.Errorf("%s: %s: %s", endpoint, res.Status, bytes.TrimSpace(why))
	}
	return nil
}
