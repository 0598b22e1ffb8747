package args

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"toolguardian/proxy/catalogue"
)

// say tells what a value must be, to follow its name.
func say(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Enum:
		return "must be one of: " + listed(k.Want)
	case *kind.Const:
		return "must be " + plain(k.Want)
	case *kind.OneOf:
		return "fits more than one of the forms it may have, and must fit one"
	case *kind.Not:
		return "is not allowed as it stands"
	case *kind.UniqueItems:
		return fmt.Sprintf("holds the same item twice, at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.PropertyNames:
		return fmt.Sprintf("has a member whose name is not allowed: %q", k.Property)
	case *kind.Pattern:
		return "must match the pattern " + k.Want
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d items too many", k.Count)
	}
	if s := sayBound(k); s != "" {
		return s
	}
	return "does not fit the schema's " + strings.Join(k.KeywordPath(), " ")
}

func sayBound(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("needs at least %d characters and has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("may have %d characters and has %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("needs at least %d items and has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("may have %d items and has %d", k.Want, k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("needs at least %d members and has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("may have %d members and has %d", k.Want, k.Got)
	}
	return ""
}

// maxListed is how many allowed values a problem names.
const maxListed = 20

func listed(values []any) string {
	parts := make([]string, 0, len(values))
	for _, v := range values[:min(len(values), maxListed)] {
		parts = append(parts, plain(v))
	}
	if more := len(values) - maxListed; more > 0 {
		parts = append(parts, fmt.Sprintf("… (%d more)", more))
	}
	return strings.Join(parts, ", ")
}

// plain is a value as JSON, a text without its quotes.
func plain(v any) string {
	if s, ok := v.(string); ok && s != "" {
		return short([]byte(s))
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return short(b)
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	digits, exact := r.FloatPrec()
	if !exact {
		return r.RatString()
	}
	return r.FloatString(digits)
}

// typeName is a schema's type in words.
var typeName = map[string]string{
	"string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false",
	"array": "a list", "object": "an object", "null": "null",
}

func typeNames(types []string) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = typeName[t]
	}
	return strings.Join(words, " or ")
}

// nearest names the known members that an unknown one may be meant for.
func nearest(name string, known map[string]any) string {
	near := catalogue.Nearest(name, slices.Sorted(maps.Keys(known)), 3)
	if len(near) == 0 {
		return ""
	}
	return "; the nearest: " + strings.Join(near, ", ")
}
