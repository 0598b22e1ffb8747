// Package catalogue holds the tools of every backend in memory, and says what
// there is: a list, a search, one tool's arguments.
//
// A Server is read once from the definitions a backend sent, whose bytes are
// kept as they came. A Catalogue is an immutable view over servers through
// one filter; list, search, describe and resolve all look through it, so that
// a hidden tool cannot be found one way and missed another. The same servers,
// filter and query give the same bytes.
//
// A server that is not up is told with its state, its error and its last
// stderr lines, never as an empty list. Nothing is written anywhere: after a
// crash the backends are read again.
package catalogue
