// Package shape is the output ladder: it makes a tool's result short enough to
// be read, and leaves alone what must stay exact.
//
// A Ladder guarantees that it is a pure function of its options, the tool's
// name and the text; that it takes time linear in the text; that what it
// gives is never longer than what it got, counted in code points; that a
// result no rule touches is the very same bytes; and that Apply drops nothing
// before it has been archived: where that fails the original is given back.
// Images, audio, links and embedded resources always pass byte for byte.
//
// The first rule that matches a text block decides, on the original text:
//
//	exempt  tools that answer with file text, or are named so: as it is
//	error   longer than error_summary_chars: its first two thirds and last third
//	small   shorter than compact_above_chars: as it is
//	diff    every change with diff_context_lines around it, all headers
//	json    an array: keys, counts, the first and last struct_keep_items
//	csv     comma, semicolon or tab separated: header, counts, first and last rows
//	shell   head, numbered samples, tail; exit codes and error lines always
//	line    what has no lines to drop: char_head and char_tail characters
//	clean   colours, CRLF, padding, repeated and blank lines
//
// A line that is too long to be shown is shortened in its middle under every
// rule, which is said in its place. Numbers before lines are those by which
// the archive is read.
//
// It does not write files: the archive is a function given to Apply. It keeps
// no state, so a crash loses nothing.
package shape
