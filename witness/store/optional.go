package store

// Copier is a Store that can be copied while it is in use.
type Copier interface {
	// CopyTo writes the newest durable state into a new file in the folder dir,
	// durably, and gives the file's name there. Opened in that folder it is a
	// store of that state.
	CopyTo(dir string) (name string, err error)
}

// Suspecter is a Store that remembers a commit with unknown outcome beyond the
// process. Its next opening reads everything into a new file first, because
// after a failed sync the page cache does not tell what the disk holds.
type Suspecter interface {
	// Suspect says that the store was opened after such a commit and not
	// trusted since.
	Suspect() bool
	// Trust forgets it; call it once the content was checked.
	Trust() error
}
