// Package setup edits the file that names the servers, finds the servers that
// other clients have, and says what a configuration lacks.
//
// An edit is textual and touches one key: every other byte, comments, order,
// byte order mark and line ends included, stays as it was. A file that cannot
// be read as meant is refused with line and column and is not written. Before
// a file is replaced its old bytes lie in a backup beside it.
//
// In a crash the file holds its old or its new bytes, never a mixture; a
// temporary file or a backup may be left over.
//
// Nothing here starts a program or reaches a network.
package setup
