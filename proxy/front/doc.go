// Package front is the MCP server that a client sees: five revisions of the
// protocol over stdio, in front of one [Handler].
//
// The stateful revisions (2024-11-05 to 2025-11-25) begin with initialize; in
// the stateless one (2026-07-28) every request carries its revision in _meta.
// Both may be spoken on one connection. The package answers what the protocol
// answers by itself (initialize, server/discover, ping, subscriptions) and
// hands the tools to the Handler with the session and the principal on every
// call.
//
// What it guarantees: requests run concurrently, so that none holds up
// another, a ping or a cancel; each is answered exactly once with its id as it
// came, also when two in flight share an id; a cancelled one is not answered;
// progress carries the client's own token, only grows, and never follows the
// reply; a notification never runs a tool; a result's bytes reach a stateful
// client as the Handler gave them, and a stateless one with the members that
// the revision asks for added only where they are missing. A bad line is
// answered and the connection lives.
//
// What it does not: know which tools there are, retry, or keep anything. After
// a crash the client has its pipe broken and nothing is left behind; what ran
// is for the Handler's receipts to tell.
package front
