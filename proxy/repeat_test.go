//go:build unix

package proxy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/receipts"
)

// Every tools/call that a server got is in its record: a call is never sent
// twice unless its tool was declared repeatable.
func TestOnlyRepeatableToolsAreSentAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		toolGuardian, told string
		sent               int
	}{
		"not declared":    {`{}`, "DIED: ", 1},
		"another tool is": {`{"repeatable":["s.echo","t"]}`, "DIED: ", 1},
		"declared":        {`{"repeatable":["s.slow"]}`, "waited", 2},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			record := filepath.Join(dir, "record")
			script := fmt.Sprintf(onCall, "slow", "once "+filepath.Join(dir, "died")+"\nexit 3")
			r, rec := processes(t, map[string]string{"s": script}, func(o *Options) {
				o.Config.ToolGuardian = []byte(tt.toolGuardian)
				o.Config.Servers[0].Args = append(o.Config.Servers[0].Args, "-record", record)
			})
			said := joined(t, connect(t, r, latest).tool("call_tool", `{"server":"s","tool":"slow"}`))
			if !strings.HasPrefix(said, tt.told) {
				t.Errorf("told %q", said)
			}
			got, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(got), `"tools/call"`); n != tt.sent {
				t.Errorf("the server got %d calls, want %d", n, tt.sent)
			}
			outcome := rec.only(t, receipts.KindOutcome)
			again := strings.Contains(outcome.member("changes"), "sent again")
			if again != (tt.sent == 2) {
				t.Errorf("receipt %s", outcome.predicate)
			}
		})
	}
}
