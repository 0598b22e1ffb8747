//go:build unix

package backend

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

func pipe(t *testing.T) (*input, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return newInput(w), r
}

// Whoever gives up in the middle of a line leaves a whole line behind.
func TestGivenUpLineIsFinished(t *testing.T) {
	in, r := pipe(t)
	line := strings.Repeat("a", 1<<20) + "\n"
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if begun, err := in.write(ctx, []byte(line)); !begun || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("begun %v, %v", begun, err)
	}
	again, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if begun, err := in.write(again, []byte("never\n")); begun || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("while another writes: begun %v, %v", begun, err)
	}
	br := bufio.NewReader(r)
	if got, err := br.ReadString('\n'); err != nil || got != line {
		t.Fatalf("%d bytes of %d arrived, %v", len(got), len(line), err)
	}
	if begun, err := in.write(t.Context(), []byte("next\n")); !begun || err != nil {
		t.Fatal(begun, err)
	}
	if got, err := br.ReadString('\n'); err != nil || got != "next\n" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestWriteToNobody(t *testing.T) {
	in, r := pipe(t)
	r.Close()
	if begun, err := in.write(t.Context(), []byte("x\n")); begun || err == nil {
		t.Errorf("begun %v, %v", begun, err)
	}
}

// A context that ends after a write leaves no deadline behind for the next.
func TestNoDeadlineIsLeft(t *testing.T) {
	in, r := pipe(t)
	br := bufio.NewReader(r)
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if begun, _ := in.write(ctx, []byte("a\n")); begun {
			if _, err := br.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if begun, err := in.write(t.Context(), []byte("b\n")); !begun || err != nil {
			t.Fatal(begun, err)
		}
		if got, err := br.ReadString('\n'); err != nil || got != "b\n" {
			t.Fatalf("%q %v", got, err)
		}
	}
}
