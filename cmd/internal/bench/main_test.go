package bench_test

import (
	"os"
	"strings"
	"testing"

	"toolguardian/cmd/internal/cli"
)

// TestMain makes this binary the product too: a bench starts it anew as a
// router, as the echo server and to verify.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(cli.Main(os.Args[1:], cli.System()))
	}
	os.Exit(m.Run())
}
