package args

import (
	"encoding/json"
	"fmt"
	"strings"

	"toolguardian/proxy/wire"
)

// decode reads JSON with its numbers as text, and refuses numbers whose value
// would be costly to form.
func decode(raw json.RawMessage) (any, error) {
	v, err := wire.Decode(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read: %w", errUnchecked, err)
	}
	if costly(v) {
		return nil, fmt.Errorf("%w: a number is too long", errUnchecked)
	}
	return v, nil
}

// costly says whether a number in v is too long.
func costly(v any) bool {
	switch v := v.(type) {
	case json.Number:
		return !modestNumber(string(v))
	case []any:
		for _, e := range v {
			if costly(e) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if costly(e) {
				return true
			}
		}
	}
	return false
}

// modestNumber says whether a number is short, its exponent included.
func modestNumber(s string) bool {
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
	}
	return len(mantissa) <= maxDigits && len(exponent) <= len("+400")
}
