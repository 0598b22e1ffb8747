//go:build unix && !linux

package backend

import (
	"os"
	"syscall"
)

func selfExe() (path, name string) {
	path, err := os.Executable()
	if err != nil {
		path = os.Args[0]
	}
	return path, path
}

func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Without a subreaper a process that leaves its group by setsid is not found
// again; the groups are what is ended.
func becomeReaper()              {}
func descendants(root int) []int { return nil }
func killOrphans(pids []int)     {}
func killDescendants()           {}
