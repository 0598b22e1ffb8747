// Package backend runs one MCP server and speaks to it.
//
// It guarantees:
//   - a request is written at most once. Nothing here sends one again, so an
//     error says either that no byte left ([ErrNotSent]) or that the outcome is
//     unknown;
//   - results come back as the bytes that arrived;
//   - a silent, slow, noisy or dying server costs its own callers only: every
//     wait has an end, and no write holds up another backend;
//   - no process outlives the router, however the router ends. One [Supervisor]
//     starts them all and ends them when its socket closes.
//
// It does not judge what a tool returns, check arguments or filter tools.
//
// In a crash of the router the kernel closes the supervisor's socket; the
// supervisor then ends every process group (TERM, two seconds, KILL) and on
// Linux whatever else descends from it. In a crash of the supervisor the router
// ends the groups itself. Nothing is kept on disk.
package backend
