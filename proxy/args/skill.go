package args

import "encoding/json"

// Skill is what read_skill takes.
type Skill struct{ Name string }

// ParseSkill reads read_skill's arguments. The name is its own and never taken
// for anything else.
func ParseSkill(raw json.RawMessage) (s Skill, err error) {
	g, order, err := read(raw)
	if err != nil {
		return s, err
	}
	if s.Name, err = g.str("name"); err == nil && s.Name == "" && g["name"] == nil {
		err = misnamed(order, "name")
	}
	return s, err
}
