// Package receipts is the receipt: its format, commitments, signature and
// verification.
package receipts
