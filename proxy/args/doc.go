// Package args reads what a model passes to the router's own tools, leniently
// where the meaning is plain and never by guessing.
//
// It guarantees that the bytes of an argument are the bytes the model wrote:
// what was wrapped in a JSON text is unwrapped once, what stood flat beside the
// router's own keys is gathered in order, and nothing is encoded anew. A text
// that is no JSON object is an error, never {}.
//
// A Checker holds arguments against the schema of their tool, with bounded
// work: no document but the schema itself is read, neither from the network
// nor from a file, and what does not compile or would cost too much is not
// checked, never refused. A coercion replaces the bytes of one value.
//
// It keeps compiled schemas in memory and nothing else.
package args
