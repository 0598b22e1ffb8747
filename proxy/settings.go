package proxy

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ReadSettings takes the TOOL_GUARDIAN_* that concern the router. An empty one
// counts as absent. The error names each that cannot be used, and what it may
// be.
func (o *Options) ReadSettings(lookup func(name string) (string, bool)) error {
	var errs []error
	for _, s := range []struct {
		name string
		take func(value string) error
	}{
		{"TOOL_GUARDIAN_WAIT", seconds(&o.Wait)},
		{"TOOL_GUARDIAN_START_TIMEOUT", seconds(&o.StartTimeout)},
		{"TOOL_GUARDIAN_CALL_TIMEOUT", seconds(&o.CallTimeout)},
		{"TOOL_GUARDIAN_DESC_WORDS", whole(&o.DescWords)},
		{"TOOL_GUARDIAN_CATALOGUE_CHARS", whole(&o.MaxChars)},
		{"TOOL_GUARDIAN_RAW_RESULTS", is(&o.RawResults, "1")},
		{"TOOL_GUARDIAN_DESCRIBE_DETAIL", is(&o.DescribeFull, "full")},
		{"TOOL_GUARDIAN_EVIDENCE", mode(&o.Evidence)},
		{"TG_VALIDATE_ARGS", is(&o.Unchecked, "0")},
	} {
		if v, ok := lookup(s.name); ok && v != "" {
			if err := s.take(v); err != nil {
				errs = append(errs, fmt.Errorf("%s=%q: %w", s.name, v, err))
			}
		}
	}
	return errors.Join(errs...)
}

func seconds(to *time.Duration) func(string) error {
	return func(v string) error {
		f, err := strconv.ParseFloat(v, 64)
		if err != nil || !(f > 0 && f < 1e6) {
			return errors.New("use a number of seconds above 0")
		}
		*to = time.Duration(f * float64(time.Second))
		return nil
	}
}

func whole(to *int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return errors.New("use a whole number, 0 or more")
		}
		*to = n
		return nil
	}
}

func is(to *bool, on string) func(string) error {
	return func(v string) error {
		*to = v == on
		return nil
	}
}

func mode(to *EvidenceMode) func(string) error {
	return func(v string) error {
		switch m := EvidenceMode(v); m {
		case EvidenceOff, EvidenceOn, EvidenceRequired:
			*to = m
			return nil
		}
		return errors.New("use off, on or required")
	}
}
