package cli

import (
	"bytes"
	"strings"
	"testing"
)

// Only an explicit yes agrees; the end of input does not.
func TestAgreed(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, " YES \n": true, "y": true, "": false, "\n": false, "n\n": false, "yep\n": false, "n\ny\n": false} {
		var asked bytes.Buffer
		a := &app{Streams: Streams{In: strings.NewReader(answer), Err: &asked}}
		if got := a.agreed("write %s? ", "f"); got != want || asked.String() != "write f? " {
			t.Errorf("%q after %q: %v", answer, asked.String(), got)
		}
	}
}

func TestCommandLineCanBeTyped(t *testing.T) {
	got := commandLine([]string{"npx", "-y", "a b", "", "$x", "it's", "@scope/pkg@1.0", "a\nb"})
	if want := `npx -y 'a b' '' '$x' 'it'\''s' @scope/pkg@1.0 "a\nb"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
