package tsa_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"toolguardian/tsa"
)

// A note is stamped by the built-in authority and judged by its pinned root.
func ExampleVerify() {
	dir, err := os.MkdirTemp("", "tsa")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	authority, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: filepath.Join(dir, "keys")})
	if err != nil {
		fmt.Println(err)
		return
	}
	note := []byte("a checkpoint\n")
	stamped, err := authority.Stamp(context.Background(), sha256.Sum256(note))
	if err != nil {
		fmt.Println(err)
		return
	}
	token, err := tsa.Verify(stamped.DER, tsa.VerifyOptions{Data: note, Roots: authority.Roots()})
	fmt.Println(err, token.Accuracy, token.SelfIssued)

	_, err = tsa.Verify(stamped.DER, tsa.VerifyOptions{Data: []byte("another\n"), Roots: authority.Roots()})
	var refused *tsa.Refusal
	fmt.Println(errors.As(err, &refused), refused.Rule)
	// Output:
	// <nil> 1s true
	// true imprint
}
