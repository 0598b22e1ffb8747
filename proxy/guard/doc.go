// Package guard notices a model that goes in circles: one that makes the same
// call again although its result does not change, and one that looks for tools
// without ever calling any.
//
// Both guards are state machines of one session with an injected clock. Loops
// counts only calls that ran, and only results that were equal byte for byte,
// so a poll whose answer changes is never stopped. Neither knows whether a
// repetition is wanted: tools made to be polled are exempt by configuration.
//
// They keep digests and never arguments or results, nothing on disk; a new
// session starts from nothing.
package guard
