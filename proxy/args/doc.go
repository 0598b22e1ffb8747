// Package args reads what a model passes to the router's own tools, leniently
// where the meaning is plain and never by guessing.
//
// It guarantees that the bytes of an argument are the bytes the model wrote:
// what was wrapped in a JSON text is unwrapped once, what stood flat beside the
// router's own keys is gathered in order, and nothing is encoded anew. A text
// that is no JSON object is an error, never {}.
//
// It does not check arguments against a schema. It keeps nothing.
package args
