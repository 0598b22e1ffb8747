// Package demo tells the product's whole story on one machine: a witness, an
// agent behind the router, the receipts, an auditor's verdict, and three
// tamperings that are caught.
//
// Every step but the tampering runs the same binary with the same words a
// user would type, so what it prints is what the commands print. It leaves
// nothing behind unless told to keep its folder; a crash leaves a folder in the
// system's temporary directory and no process, since each ends with ours.
package demo
