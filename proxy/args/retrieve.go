package args

import "encoding/json"

// Retrieve is what retrieve_spill takes.
type Retrieve struct {
	ID, Grep   string
	Start, Max int // 0: absent
}

// ParseRetrieve reads retrieve_spill's arguments.
func ParseRetrieve(raw json.RawMessage) (t Retrieve, err error) {
	g, order, err := read(raw)
	if err != nil {
		return t, err
	}
	if t.ID, err = g.str("id"); err != nil {
		return t, err
	}
	if t.ID == "" && g["id"] == nil {
		if err := misnamed(order, "id"); err != nil {
			return t, err
		}
	}
	if t.Grep, err = g.str("grep"); err != nil {
		return t, err
	}
	if t.Start, err = g.whole("start_line"); err != nil {
		return t, err
	}
	t.Max, err = g.whole("max_lines")
	return t, err
}
