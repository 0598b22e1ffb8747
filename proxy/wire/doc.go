// Package wire reads and writes JSON-RPC 2.0 messages, one a line, without
// ever re-encoding them.
//
// Decoding and encoding again loses what a receipt must vouch for: 1.0 becomes
// 1, 9007199254740993 becomes ...992, unknown members and the order of keys
// go. So a [Message] keeps its bytes, knows where its top-level members lie,
// and the few changes a proxy must make are splices: the bytes around a splice
// are equal before and after. An id or a progress token is its JSON text.
//
// What it guarantees: one pass over the bytes, memory linear in the message
// and bounded by the reader's cap, nesting bounded by [MaxDepth], no panic on
// any input. A line that is no message is a [*LineError] and the next line is
// read as if it had not been there. Everything called a message is valid JSON
// by RFC 8259, except that strings may hold invalid UTF-8, which passes as it
// came, so a spliced message is one too.
//
// What it does not: decode, check a schema, know a method, or open a
// connection. It keeps nothing on disk, so a crash loses only what was in
// flight; a line cut short by the peer's end is a [*LineError].
package wire
