package cli

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"toolguardian/chain"
	"toolguardian/receipts"
)

func (a *app) receiptsCommand() *cobra.Command {
	return group("receipts", "Read what was recorded", a.receiptsList(), a.receiptsShow(), a.receiptsTail(), a.receiptsGrep(), a.receiptsExport(),
		a.receiptsProof(), a.receiptsOpen(), a.receiptsErase())
}

// chainFlag is the evidence folder a reading command looks at.
type chainFlag struct{ dir string }

func (f *chainFlag) flags(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&f.dir, "chain", "", "the evidence folder (default: yours, below ~/.tool-guardian)")
	return c
}

// read runs act over a reader of the folder.
func (a *app) read(f chainFlag, act func(*chain.Reader) error) error {
	dir, err := a.chainDir(f.dir)
	if err != nil {
		return err
	}
	r, err := chain.OpenReader(dir)
	if err != nil {
		return noChain(dir, err)
	}
	defer r.Close()
	return act(r)
}

// noChain says of a folder without a chain how one comes about.
func noChain(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, chain.ErrNoChain) {
		return fmt.Errorf("there is no chain in %s: the router makes one at its first start; --chain names another folder", dir)
	}
	return err
}

// chainDir is the named folder, else the user's own.
func (a *app) chainDir(named string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	return a.evidenceDir()
}

func (a *app) receiptsList() *cobra.Command {
	var f chainFlag
	var sel filter
	var last uint64
	c := sel.flags(f.flags(&cobra.Command{
		Use: "list", Short: "List the receipts, a line each", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := sel.parse(a.Now()); err != nil {
				return err
			}
			return a.read(f, func(r *chain.Reader) error { return a.listReceipts(r, sel, last) })
		},
	}))
	c.Flags().Uint64Var(&last, "last", 0, "only the newest N")
	return c
}

func (a *app) listReceipts(r *chain.Reader, sel filter, last uint64) error {
	size, err := r.Size()
	if err != nil {
		return err
	}
	from := uint64(0)
	if last > 0 && last < size {
		from = size - last
	}
	l := a.newList()
	if err := sel.each(r, from, func(rec record) error { l.add(rec.entry); return nil }); err != nil {
		return err
	}
	l.flush()
	if l.rows == 0 && size > from {
		a.say("none of %d receipts matches", size-from)
	}
	return nil
}

// printEntry prints one receipt as one line of JSON.
func (a *app) printEntry(e entry) {
	b, err := json.Marshal(e)
	if err != nil {
		a.fail(err)
		return
	}
	a.print("%s\n", b)
}

// entry is a receipt as the list shows it.
type entry struct {
	Seq     uint64 `json:"seq"`
	Time    string `json:"time"` // the wall clock as the receipt states it, RFC 3339
	Kind    string `json:"kind"`
	Session string `json:"session,omitempty"`
	What    string `json:"what"`
	Result  string `json:"result"`
}

// readEntry decodes a line for showing; it verifies nothing.
func readEntry(line chain.Line) entry {
	e := entry{Seq: line.Seq, Kind: "?", Result: "unreadable"}
	env, err := receipts.ParseLine(line.Bytes)
	if err != nil {
		return e
	}
	st, err := receipts.ParseStatement(env.Payload)
	if err != nil {
		return e
	}
	e.Time = st.Text("time", "wall")
	e.Kind, e.Session, e.What, e.Result = string(st.Kind), st.Text("session"), what(st), result(st)
	return e
}

// toSeconds shortens a receipt's time for people.
func toSeconds(wall string) string {
	s, _, _ := strings.Cut(strings.Replace(wall, "T", " ", 1), ".")
	return s
}

func what(st *receipts.Statement) string {
	if tool := st.Text("call", "tool"); tool != "" {
		return st.Text("call", "server") + "." + tool
	}
	switch st.Kind {
	case receipts.KindSessionOpen:
		return st.Text("client", "name")
	case receipts.KindChanged:
		return st.Text("what")
	case receipts.KindGenesis, receipts.KindSuccessor, receipts.KindRotation:
		return st.HeadKey
	}
	return ""
}

func result(st *receipts.Statement) string {
	if reason := st.Text("reason"); st.Kind == receipts.KindRefused && reason != "" {
		return reason // policy allowed it, something else did not
	}
	for _, member := range []string{"status", "effect", "end", "reason"} {
		if v := st.Text(member); v != "" {
			return v
		}
	}
	return ""
}

func (a *app) receiptsShow() *cobra.Command {
	var f chainFlag
	return f.flags(&cobra.Command{
		Use: "show SEQ", Short: "Show one receipt in full", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			seq, err := parseSeq(args[0])
			if err != nil {
				return err
			}
			return a.read(f, func(r *chain.Reader) error { return a.showReceipt(r, seq) })
		},
	})
}

func (a *app) showReceipt(r *chain.Reader, seq uint64) error {
	if err := within(r, seq); err != nil {
		return err
	}
	line, err := r.Line(seq)
	if err != nil {
		return err
	}
	env, err := receipts.ParseLine(line)
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, env.Payload, "", "  "); err != nil {
		return err
	}
	a.print("%s\n", pretty.Bytes())
	a.say("signed by receipt key %x; not verified here: tool-guardian verify does that", env.KeyID)
	return nil
}

// readStatement reads what a receipt states; it verifies nothing.
func readStatement(r *chain.Reader, seq uint64) (*receipts.Statement, error) {
	line, err := r.Line(seq)
	if err != nil {
		return nil, err
	}
	env, err := receipts.ParseLine(line)
	if err != nil {
		return nil, fmt.Errorf("receipt %d: %w", seq, err)
	}
	return receipts.ParseStatement(env.Payload)
}

// within refuses the number of a receipt that is not there yet.
func within(r *chain.Reader, seq uint64) error {
	size, err := r.Size()
	if err == nil && seq >= size {
		return fmt.Errorf("there is no receipt %d: the chain holds %d, numbered from 0; receipts list shows them", seq, size)
	}
	return err
}

func parseSeq(s string) (uint64, error) {
	seq, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, usagef("%q is not a receipt's number; receipts list shows them", s)
	}
	return seq, nil
}

func (a *app) receiptsOpen() *cobra.Command {
	var f chainFlag
	var from, out string
	c := f.flags(&cobra.Command{
		Use:   "open SEQ FIELD --from FILE",
		Short: "Write the opening of a committed field, for sha256sum to check",
		Long: "Write the opening of a committed field: its salt and the bytes, which you must still have.\n" +
			"Fields: " + fieldNames() + ". sha256sum of the opening is the digest in the receipt's subject.",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			seq, err := parseSeq(args[0])
			if err != nil {
				return err
			}
			field := receipts.FieldNamed(args[1])
			if field == 0 {
				return usagef("%q is no field; known are %s", args[1], fieldNames())
			}
			data, err := readInput(from)
			if err != nil {
				return err
			}
			return a.read(f, func(r *chain.Reader) error { return a.openField(r, seq, field, data, out) })
		},
	})
	c.Flags().StringVar(&from, "from", "", "the file with the committed bytes")
	c.Flags().StringVarP(&out, "out", "o", "", "where the opening goes (default SEQ.FIELD.open)")
	must(c.MarkFlagRequired("from"))
	return c
}

func fieldNames() string {
	var names []string
	for _, f := range receipts.Fields() {
		names = append(names, f.String())
	}
	return strings.Join(names, ", ")
}

func (a *app) openField(r *chain.Reader, seq uint64, field receipts.FieldID, data []byte, out string) error {
	if err := within(r, seq); err != nil {
		return err
	}
	st, err := readStatement(r, seq)
	if err != nil {
		return err
	}
	if !has(st, field) {
		return fmt.Errorf("receipt %d (%s) commits to no %s; receipts show %d lists its fields", seq, st.Kind, field, seq)
	}
	salt, err := r.Salt(seq, field)
	if err != nil {
		return err
	}
	commitment := receipts.Commit(field, salt, data).Commitment
	if !committed(st, field, commitment) {
		return fmt.Errorf("receipt %d commits to other bytes as %s; the file given hashes to %x: it must be the exact bytes, without a newline that an editor added", seq, field, commitment)
	}
	if out == "" {
		out = fmt.Sprintf("%d.%s.open", seq, field)
	}
	if err := os.WriteFile(out, receipts.Opening(field, salt, data), 0o600); err != nil {
		return err
	}
	a.print("%s  %s\n", hex.EncodeToString(commitment[:]), out)
	return nil
}

func has(st *receipts.Statement, field receipts.FieldID) bool {
	return slices.ContainsFunc(st.Subjects, func(s receipts.Subject) bool { return s.Name == field.String() })
}

func committed(st *receipts.Statement, field receipts.FieldID, commitment [32]byte) bool {
	for _, s := range st.Subjects {
		if s.Name == field.String() {
			return s.Digest == commitment
		}
	}
	return false
}
