// Package catalogue holds the tools of every backend in memory, and says what
// there is: a list, a search, one tool's arguments, groups and their prices.
//
// A Server is read once from the definitions a backend sent, whose bytes are
// kept as they came. A Catalogue is an immutable view over servers through
// one filter; list, search, describe, price and resolve all look through it,
// so that a hidden tool cannot be found one way and missed another. The same
// servers, filter and query give the same bytes.
//
// A search ranks by BM25 over the stems of names, descriptions and parameters,
// with synonyms of our own (synonyms.txt) and without a model. A tool is a hit
// only if it answers enough of the query, so that a query which nothing
// answers lists nothing. What a tool needs from another (Options.Needs) is
// guessed by names and may be wrong.
//
// Prices are estimates, characters / 3.5, by the reference's formula.
//
// A server that is not up is told with its state, its error and its last
// stderr lines, never as an empty list.
//
// Skills are files: found once, read again when they are asked for, by name
// and never by a path. Nothing is written anywhere: after a crash the backends
// and the folders are read again.
package catalogue
