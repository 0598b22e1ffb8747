// Package wire reads and writes JSON-RPC 2.0 messages, one a line, without
// ever re-encoding them.
package wire
