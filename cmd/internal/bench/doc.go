// Package bench measures this machine and the product on it, side by side.
//
// A figure alone says more about a disk than about a program. So every report
// holds the product's figure and, taken in the same run and in turns with it,
// the bare cost of what it is made of: the same calls without the router, one
// small write made durable, one signature. The aims are ratios between the
// two. An aim that is missed is printed, never an error: a figure fails no
// build.
//
// Everything is done in a temporary folder that is removed in the end. After a
// crash the folder is left; nothing else is touched.
package bench
