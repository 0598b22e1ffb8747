// Package chain keeps one append-only chain of signed receipts on one host.
package chain
