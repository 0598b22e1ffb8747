package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// memory of a process in KiB: what it holds now, and the most it ever held.
func memory(pid int) (now, peak int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	if now, err = statusKB(b, "VmRSS:"); err != nil {
		return 0, 0, err
	}
	peak, err = statusKB(b, "VmHWM:")
	return now, peak, err
}

func statusKB(status []byte, name string) (int64, error) {
	for line := range bytes.Lines(status) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == name {
			return strconv.ParseInt(string(f[1]), 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s: the process has ended", name)
}
