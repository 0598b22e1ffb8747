// Package tlog holds the strict C2SP formats of a transparency log.
package tlog
