//go:build !linux

package bench

import "os"

// syncData syncs the times too: there is no fdatasync everywhere.
func syncData(f *os.File) error { return f.Sync() }
