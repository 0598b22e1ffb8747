package bench

import (
	"os"
	"testing"
)

func TestMemory(t *testing.T) {
	now, peak, err := memory(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if now < 1024 || peak < now {
		t.Errorf("this process holds %d KiB, at most %d", now, peak)
	}
	if _, err := statusKB([]byte("Name:\tzombie\nState:\tZ\n"), "VmHWM:"); err == nil {
		t.Error("a process without memory has a peak")
	}
}
