package args

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// fault is one thing that is wrong with a value.
type fault struct {
	at     []string       // member names and indexes, from the arguments down
	text   string         // for a reader
	schema map[string]any // that raised it; nil: not known
	remove bool           // what stands there is not wanted at all
	want   []string       // the types it may have, where that alone is wrong
}

// finder reads the library's errors.
type finder struct {
	root  any // the schema
	value any // the arguments
}

// find lists the faults, each once, by their place.
func (f finder) find(e *jsonschema.ValidationError) []fault {
	all := f.faults(e)
	slices.SortStableFunc(all, func(a, b fault) int {
		if c := slices.Compare(a.at, b.at); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	return slices.CompactFunc(all, func(a, b fault) bool { return a.text == b.text && slices.Equal(a.at, b.at) })
}

func (f finder) faults(e *jsonschema.ValidationError) []fault {
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		var all []fault
		for _, c := range e.Causes {
			all = append(all, f.faults(c)...)
		}
		return all
	case *kind.AnyOf:
		return f.alternatives(e)
	case *kind.OneOf:
		if k.Subschemas == nil {
			return f.alternatives(e)
		}
	case *kind.Required:
		return f.members(e, k.Missing, "is missing", false)
	case *kind.Dependency:
		return f.members(e, k.Missing, "is needed beside '"+k.Prop+"'", false)
	case *kind.DependentRequired:
		return f.members(e, k.Missing, "is needed beside '"+k.Prop+"'", false)
	case *kind.AdditionalProperties:
		return f.members(e, k.Properties, "is not known", true)
	case *kind.Type:
		return []fault{f.mistyped(e, k.Want)}
	case *kind.FalseSchema:
		return []fault{{at: e.InstanceLocation, text: f.tell(e.InstanceLocation, "is not known"), remove: true}}
	}
	return []fault{{at: e.InstanceLocation, text: f.tell(e.InstanceLocation, say(e.ErrorKind)), schema: f.at(e.SchemaURL)}}
}

// members are faults of an object's members, each at its own place.
func (f finder) members(e *jsonschema.ValidationError, names []string, what string, remove bool) []fault {
	s := f.at(e.SchemaURL)
	properties, _ := s["properties"].(map[string]any)
	out := make([]fault, 0, len(names))
	for _, name := range names {
		at := append(slices.Clone(e.InstanceLocation), name)
		text := f.tell(at, what)
		if remove {
			text += nearest(name, properties)
		}
		member, _ := properties[name].(map[string]any)
		out = append(out, fault{at: at, text: text, schema: member, remove: remove})
	}
	return out
}

func (f finder) mistyped(e *jsonschema.ValidationError, want []string) fault {
	at := e.InstanceLocation
	return fault{at: at, text: f.tell(at, "must be "+typeNames(want)+", not "+f.shown(at)), schema: f.at(e.SchemaURL), want: want}
}

// alternatives tells an anyOf or a oneOf that nothing fits: the types, where
// only these are wrong, else the faults of the alternative that came nearest.
func (f finder) alternatives(e *jsonschema.ValidationError) []fault {
	if want, ok := onlyTypes(e, e.InstanceLocation); ok {
		return []fault{f.mistyped(e, want)}
	}
	var best []fault
	lowest := -1
	for _, c := range e.Causes {
		branch := f.faults(c)
		if cost := distance(branch, e.InstanceLocation); lowest < 0 || cost < lowest {
			best, lowest = branch, cost
		}
	}
	for i := range best {
		best[i].want = nil // another alternative may be meant: nothing is coerced
	}
	return best
}

// distance is how far a value is from an alternative: one of another type is
// farthest.
func distance(faults []fault, at []string) int {
	cost := len(faults)
	for _, f := range faults {
		if len(f.want) > 0 && slices.Equal(f.at, at) {
			cost += 1000
		}
		if _, fixed := f.schema["const"]; fixed {
			cost += 10
		}
	}
	return cost
}

// onlyTypes is the union of the types wanted at a place, where nothing else is
// wrong in any alternative.
func onlyTypes(e *jsonschema.ValidationError, at []string) (want []string, ok bool) {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return k.Want, slices.Equal(e.InstanceLocation, at)
	case *kind.Group, *kind.Reference, *kind.AnyOf, *kind.OneOf, *kind.AllOf:
		for _, c := range e.Causes {
			more, ok := onlyTypes(c, at)
			if !ok {
				return nil, false
			}
			for _, w := range more {
				if !slices.Contains(want, w) {
					want = append(want, w)
				}
			}
		}
		return want, len(e.Causes) > 0
	}
	return nil, false
}

// tell says something of the argument at a place.
func (f finder) tell(at []string, what string) string {
	if len(at) == 0 {
		return "args " + what
	}
	return "argument '" + f.path(at) + "' " + what
}

// path is a place as a reader writes it: params.filters[2].op.
func (f finder) path(at []string) string {
	var b strings.Builder
	v := f.value
	for i, step := range at {
		list, isList := v.([]any)
		switch {
		case isList:
			b.WriteString("[" + step + "]")
			v = nil
			if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(list) {
				v = list[n]
			}
			continue
		case strings.ContainsAny(step, ".[]'\"\n") || step == "":
			b.WriteString("[" + strconv.Quote(step) + "]")
		default:
			if i > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
		object, _ := v.(map[string]any)
		v = object[step]
	}
	return b.String()
}

// shown is a value in few words.
func (f finder) shown(at []string) string {
	switch v := find(f.value, at).(type) {
	case string:
		return "text " + string(short([]byte(strconv.Quote(v))))
	case json.Number:
		return "the number " + short([]byte(v))
	case bool:
		return strconv.FormatBool(v)
	case nil:
		return "null"
	case []any:
		return "a list"
	}
	return "an object"
}

// find is the value at a place, nil where there is none.
func find(v any, at []string) any {
	for _, step := range at {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}
