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
	var check bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if check {
				return a.newer()
			}
			return a.version()
		},
	}
	c.Flags().BoolVar(&check, "check", false, "say whether there is a newer version")
	return c
}

// newer answers for a newer version: nothing is asked of any network, for this
// build was not told where its releases appear.
func (a *app) newer() error {
	if err := a.version(); err != nil {
		return err
	}
	if a.Getenv("GUARDIAN_NO_UPDATE_CHECK") != "" {
		a.say("update: not checked, GUARDIAN_NO_UPDATE_CHECK being set")
		return nil
	}
	a.say("update: could not check: this build names no place where releases appear")
	return verdict(Failed)
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
