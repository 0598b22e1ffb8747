package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"

	"toolguardian/proxy/front"
)

// Replay is an MCP server with the tools of a recorded catalogue. It serves
// until in ends.
func Replay(file string, in io.Reader, out io.Writer) error {
	c, err := readCatalog(file)
	if err != nil {
		return err
	}
	list, err := c.compact()
	if err != nil {
		return err
	}
	s, err := front.New(front.Options{Handler: replay{list: list}, Info: front.Info{Name: c.name, Version: "recorded"}})
	if err != nil {
		return err
	}
	return s.ServeStdio(context.Background(), in, out)
}

// replay differs from echo in the tools it lists.
type replay struct {
	echo
	list json.RawMessage
}

func (r replay) ListTools(context.Context, *front.Session) (json.RawMessage, error) {
	return r.list, nil
}

// compact is the tools array of a tools/list answer as a server sends it.
func (r recorded) compact() (json.RawMessage, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, d := range r.list {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := json.Compact(&b, d); err != nil {
			return nil, err
		}
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}
