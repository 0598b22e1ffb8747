package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"toolguardian/chain"
	"toolguardian/receipts"
)

func (a *app) receiptsErase() *cobra.Command {
	var f chainFlag
	var person string
	c := f.flags(&cobra.Command{
		Use:   "erase SEQ [FIELD…] | --person P",
		Short: "Destroy salts, so that what a receipt commits to can never be opened or guessed",
		Long: "Destroy the salts of a receipt's fields, or of a person in every receipt. An erasure receipt says so\n" +
			"first; lines, signatures and proofs stay good. Openings here and archived results with these bytes are\n" +
			"removed too. Copies that you gave away, backups and what a disk keeps by itself are out of reach.\n" +
			"Fields: " + fieldNames() + "; without one, all of the receipt's own.",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 0) == (person == "") {
				return usagef("name a receipt, or --person, and not both")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return a.changeChain(c.Context(), f, func(ch *chain.Chain) error {
				e, err := a.erasure(ch, person, args)
				if err != nil {
					return err
				}
				return a.erase(c.Context(), ch, e)
			})
		},
	})
	c.Flags().StringVar(&person, "person", "", "the person whose salt goes, in every receipt")
	return c
}

func (a *app) erase(ctx context.Context, ch *chain.Chain, e chain.Erasure) error {
	done, err := ch.Erase(ctx, e)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(struct {
			Fields []erasedField `json:"fields"`
			Files  []string      `json:"files"`
		}{erasedFields(done.Fields), append([]string{}, done.Files...)})
		return nil
	}
	for _, f := range done.Fields {
		a.print("erased   %d %s\n", f.Seq, f.Field)
	}
	for _, name := range done.Files {
		a.print("removed  %s\n", name)
	}
	a.say("openings and exports that left this machine, and backups, still hold what they held")
	return nil
}

// erasedField is one field as JSON names it.
type erasedField struct {
	Seq   uint64 `json:"seq"`
	Field string `json:"field"`
}

func erasedFields(all []receipts.Erased) []erasedField {
	out := []erasedField{}
	for _, e := range all {
		out = append(out, erasedField(e))
	}
	return out
}

// erasure is what the words of the command ask for.
func (a *app) erasure(ch *chain.Chain, person string, args []string) (chain.Erasure, error) {
	if person != "" {
		return chain.Erasure{Person: []byte(person)}, nil
	}
	seq, err := parseSeq(args[0])
	if err != nil {
		return chain.Erasure{}, err
	}
	line, err := ch.Line(seq)
	if err != nil {
		return chain.Erasure{}, err
	}
	st, err := parseLine(line)
	if err != nil {
		return chain.Erasure{}, fmt.Errorf("receipt %d: %w", seq, err)
	}
	fields, err := fieldsToErase(st, args[1:])
	if err != nil {
		return chain.Erasure{}, err
	}
	e := chain.Erasure{Fields: fields}
	e.Files, err = a.archived(ch, st, fields)
	return e, err
}

func fieldsToErase(st *receipts.Statement, names []string) ([]receipts.Erased, error) {
	var fields []receipts.Erased
	for _, s := range st.Subjects {
		if own := receipts.FieldNamed(s.Name); own != 0 && own < receipts.FieldPrincipal && (len(names) == 0 || slices.Contains(names, s.Name)) {
			fields = append(fields, receipts.Erased{Seq: st.Seq, Field: s.Name})
		}
	}
	for _, name := range names {
		switch f := receipts.FieldNamed(name); {
		case f == 0:
			return nil, usagef("%q is no field; known are %s", name, fieldNames())
		case f >= receipts.FieldPrincipal:
			return nil, usagef("%s has one salt for all receipts: use --person", name)
		}
	}
	if len(fields) == 0 || len(names) > len(fields) {
		return nil, usagef("receipt %d does not commit to that; receipts show %d lists its fields", st.Seq, st.Seq)
	}
	return fields, nil
}

// spillDir is the folder of archived results.
func (a *app) spillDir() (string, error) {
	if dir := a.Getenv("TOOL_GUARDIAN_SPILL_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	h, err := a.home()
	return filepath.Join(h, "spill"), err
}

// archived lists the archived results whose bytes a field commits to: it must
// be asked while the salts are there.
func (a *app) archived(ch *chain.Chain, st *receipts.Statement, fields []receipts.Erased) ([]string, error) {
	dir, err := a.spillDir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []string
	for _, f := range fields {
		field := receipts.FieldNamed(f.Field)
		salt, err := ch.Salt(f.Seq, field)
		if err != nil {
			return nil, err
		}
		size := string(st.Value("fields", f.Field, "size"))
		for _, e := range entries {
			id, raw := strings.CutSuffix(e.Name(), ".raw")
			if info, err := e.Info(); !raw || err != nil || size != "" && size != fmt.Sprint(info.Size()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			if committed(st, field, receipts.Commit(field, salt, data).Commitment) {
				base := filepath.Join(dir, id)
				files = append(files, base+".txt", base+".json", base+".raw")
			}
		}
	}
	return files, nil
}

// parseLine reads what a line states; it verifies nothing.
func parseLine(line []byte) (*receipts.Statement, error) {
	env, err := receipts.ParseLine(line)
	if err != nil {
		return nil, err
	}
	return receipts.ParseStatement(env.Payload)
}
