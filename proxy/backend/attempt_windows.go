package backend

import "os"

// attempt leaves every write to the one that waits.
type attempt struct{}

func (attempt) prepare(*os.File)          {}
func (attempt) write([]byte) (int, error) { return 0, nil }
