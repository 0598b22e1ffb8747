// Package config reads the file that names the backends, the .env beside it,
// and decides which variables each backend may see.
//
// It starts nothing, writes nothing and reaches no network. A file that cannot
// be read as meant is an error that names line and column; a single entry that
// cannot be used is kept with the reason in [Server.Problem], so that it is
// shown and never silently missing.
package config
