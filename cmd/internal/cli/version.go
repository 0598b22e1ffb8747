package cli

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Version is the release; receipts carry it.
const Version = "0.1.0"

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.version() },
	}
}

// build is what `version` shows.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source, where the build recorded it
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (a *app) version() error {
	b := build{Version: Version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	if a.json {
		a.printJSON(b)
		return nil
	}
	words := []string{"tool-guardian", b.Version, b.Revision, b.Go, b.OS + "/" + b.Arch}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	a.print("%s\n", strings.Join(words, " "))
	return nil
}
