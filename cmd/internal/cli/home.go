package cli

import (
	"os"
	"path/filepath"
)

// home is the folder that holds our files: $TOOL_GUARDIAN_HOME, else ~/.tool-guardian.
func (a *app) home() (string, error) {
	if h := a.Getenv("TOOL_GUARDIAN_HOME"); h != "" {
		return filepath.Abs(h)
	}
	h := a.Getenv("HOME")
	if h == "" {
		var err error
		if h, err = os.UserHomeDir(); err != nil {
			return "", usagef("no home folder is known: set TOOL_GUARDIAN_HOME to a folder of yours")
		}
	}
	return filepath.Join(h, ".tool-guardian"), nil
}

// evidenceDir is the folder of this user's chain.
func (a *app) evidenceDir() (string, error) {
	h, err := a.home()
	return filepath.Join(h, "evidence"), err
}
