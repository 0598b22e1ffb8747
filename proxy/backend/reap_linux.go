package backend

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// selfExe survives a replacement of the binary's file.
func selfExe() (path, name string) {
	name, err := os.Executable()
	if err != nil {
		name = "tool-guardian"
	}
	return "/proc/self/exe", name
}

// childAttr makes a group leader that does not outlive a killed supervisor.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// becomeReaper makes orphans below us our children, so none can get away, and
// keeps descriptors that the router itself inherited from its client out of the
// backends. Older kernels lack the second.
func becomeReaper() {
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
}

// descendants are all processes below root, in no order.
func descendants(root int) []int {
	children := map[int][]int{}
	for pid, parent := range processes() {
		children[parent] = append(children[parent], pid)
	}
	var out []int
	for next := children[root]; len(next) > 0; {
		var below []int
		for _, pid := range next {
			below = append(below, children[pid]...)
		}
		out = append(out, next...)
		next = below
	}
	return out
}

// processes maps every pid to its parent's.
func processes() map[int]int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	out := map[int]int{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out[pid] = parentOf(pid)
		}
	}
	return out
}

// parentOf reads the field after the state in /proc/PID/stat; the command name
// before it is in parentheses and may hold anything. It is 0 when pid is gone.
func parentOf(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	return parent
}

// killOrphans ends those of a former tree that left its group by setsid and are
// our children now.
func killOrphans(pids []int) {
	self := os.Getpid()
	for _, pid := range pids {
		if parentOf(pid) == self {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// killDescendants leaves nothing below this process. A fork between look and
// kill is met by the next round.
func killDescendants() {
	deadline := time.Now().Add(grace)
	for time.Now().Before(deadline) {
		left := descendants(os.Getpid())
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(groupPoll)
	}
}
