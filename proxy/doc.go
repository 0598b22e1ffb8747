// Package proxy is the router's data path: one client's tool call, from its
// arguments to the backend and back, with a receipt before and after.
//
// Router answers the tools a client sees. A call goes through the steps of
// Router.call in one fixed order, and this is what holds at every moment:
//
//   - no byte of a call reaches a backend before its decision receipt is
//     durable, and no byte of its result reaches the client before its outcome
//     is (EvidenceRequired; under EvidenceOn a store that fails lets the call
//     run, and a gap receipt follows as soon as the store works again);
//   - the bytes of arguments and results are committed to as they were placed
//     and as they were delivered, never as somebody would encode them again;
//   - a tools/call is sent once, unless its tool was declared repeatable. What is
//     not known to have failed is said to be unknown, to the client and in the
//     receipt;
//   - arguments that cannot work and calls that go in circles are not sent, and
//     the refusal has a receipt;
//   - nothing of a result is left out before the whole is in the archive;
//   - list, search, describe and call look through one filtered view.
//
// Nothing is locked while a call waits, but the one session that is being
// closed. It does not run processes, speak the protocol or write files: that
// is proxy/backend, proxy/front and the Recorder.
//
// In a crash the calls under way have a decision without an outcome, which a
// verifier reports as an incomplete round trip.
package proxy
