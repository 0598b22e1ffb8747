package cli

import (
	"encoding/json"
)

// printJSON writes one JSON value and a newline to stdout.
func (a *app) printJSON(v jsonValue) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		a.fail(err)
		return
	}
	a.print("%s\n", b)
}

// jsonValue is whatever encoding/json takes.
type jsonValue any

// must ends the program on a mistake in the command tree itself.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
