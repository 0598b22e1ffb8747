// Package files is a small MCP server over one folder: list, read, write and
// search. It is the real backend of the demo and of the first tests, so that
// neither needs anything but Go.
//
// It guarantees that no request leaves the folder: every path goes through
// [os.Root], which refuses "..", absolute paths and links that point outside.
// It does not lock files and does not make a write durable; a crash in the
// middle of write_file can leave a short file.
package files
