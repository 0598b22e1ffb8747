//go:build unix && !linux

package cli

import "os"

// reopen opens the pipe behind f once more: not possible here, where
// /dev/fd/0 is the same open file.
func reopen(*os.File) *os.File { return nil }
