// Package policy decides whether a tool may be called.
//
// Decide is pure: the same policy and the same call give the same decision, on
// any host, with no clock, file or network. What cannot be read denies: a
// policy file with an error in it becomes DenyAll, never "no policy".
//
// A decision is about a name as the server gave it. The hints a server writes
// about its own tools are used by readOnly alone, which narrows what a
// well-behaved server offers; it is no sandbox. Nothing is kept between calls,
// so a crash loses nothing.
package policy
