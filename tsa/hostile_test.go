package tsa_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"toolguardian/tsa"
)

// seed is a response or token that is accepted with its options.
type seed struct {
	name    string
	bytes   []byte
	options tsa.VerifyOptions
}

// judge does what a user does with received bytes.
func (s seed) judge(b []byte) (tsa.Token, error) {
	token, err := tsa.SplitToken(b)
	if err != nil {
		return tsa.Token{}, err
	}
	return tsa.Verify(token, s.options)
}

// seeds are our own token and, where present, the accepted foreign ones.
func seeds(t testing.TB) []seed {
	t.Helper()
	a, err := tsa.NewAuthority(tsa.AuthorityOptions{Dir: filepath.Join(t.TempDir(), "tsa")})
	if err != nil {
		t.Fatal(err)
	}
	token, err := a.Stamp(context.Background(), sha256.Sum256([]byte("x")))
	if err != nil {
		t.Fatal(err)
	}
	found := []seed{{"ours", token.DER, tsa.VerifyOptions{Data: []byte("x"), Roots: a.Roots(), Nonce: token.Nonce, Now: token.Time}}}
	shared, present := sharedPath()
	if !present {
		return found
	}
	dir := filepath.Join(shared, "forged")
	files, err := filepath.Glob(filepath.Join(dir, "*-ok-*.tsr"))
	if err != nil {
		t.Fatal(err)
	}
	o := forgedOptions(t, dir)
	for _, f := range files {
		found = append(found, seed{filepath.Base(f), readFile(t, f), o})
	}
	return found
}

// TestMutants changes accepted tokens in every byte and in length. A mutant may
// be accepted, since unsigned parts exist, but it must state what its seed
// states.
func TestMutants(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, s := range seeds(t) {
		t.Run(s.name, func(t *testing.T) {
			want, err := s.judge(s.bytes)
			if err != nil {
				t.Fatal(err)
			}
			stride := 1
			if testing.Short() {
				stride = 16
			}
			refused, made := 0, 0
			for i := 0; i < len(s.bytes); i += stride {
				made += 2
				m := bytes.Clone(s.bytes)
				m[i] ^= 1 << random.IntN(8)
				refused += s.check(t, want, m)
				refused += s.check(t, want, mangle(random, s.bytes))
			}
			if refused < made/2 {
				t.Errorf("only %d of %d mutants are refused", refused, made)
			}
		})
	}
}

// mangle cuts, doubles, moves or fills a stretch.
func mangle(random *rand.Rand, b []byte) []byte {
	from := random.IntN(len(b))
	to := min(len(b), from+1+random.IntN(40))
	switch random.IntN(4) {
	case 0:
		return append(bytes.Clone(b[:from]), b[to:]...)
	case 1:
		return append(bytes.Clone(b[:to]), b[from:]...)
	case 2:
		m := bytes.Clone(b)
		copy(m[random.IntN(len(m)):], b[from:to])
		return m
	}
	m := bytes.Clone(b)
	for i := from; i < to; i++ {
		m[i] = byte(random.Uint32())
	}
	return m
}

// check returns 1 for a refused mutant.
func (s seed) check(t *testing.T, want tsa.Token, mutant []byte) int {
	t.Helper()
	got, err := s.judge(mutant)
	if err != nil {
		return 1
	}
	same := bytes.Equal(got.Imprint.Sum, want.Imprint.Sum) && got.Time.Equal(want.Time) &&
		got.Serial.Cmp(want.Serial) == 0 && got.Policy == want.Policy && got.Accuracy == want.Accuracy
	if !same {
		t.Errorf("an accepted mutant states %v %v %v %s", got.Imprint.Sum, got.Time, got.Serial, got.Policy)
	}
	return 0
}

// hostileInputs are cheap to make and dear to parse carelessly.
func hostileInputs() map[string][]byte {
	nested := func(tag byte, depth int) []byte {
		b := []byte{5, 0}
		for range depth {
			switch n := len(b); {
			case n < 0x80:
				b = append([]byte{tag, byte(n)}, b...)
			case n < 0x100:
				b = append([]byte{tag, 0x81, byte(n)}, b...)
			default:
				b = append([]byte{tag, 0x82, byte(n >> 8), byte(n)}, b...)
			}
		}
		return b
	}
	wide := func(unit string) []byte {
		body := strings.Repeat(unit, (tsa.MaxToken-4)/len(unit))
		return append([]byte{0x30, 0x82, byte(len(body) >> 8), byte(len(body))}, body...)
	}
	return map[string][]byte{
		"deep":              nested(0x30, 16000),
		"deep sets":         nested(0x31, 16000),
		"deep context":      nested(0xa0, 16000),
		"deep indefinite":   bytes.Repeat([]byte{0x30, 0x80}, tsa.MaxToken/2),
		"constructed bytes": bytes.Repeat([]byte{0x24, 0x80}, tsa.MaxToken/2),
		"wide nulls":        wide("\x05\x00"),
		"wide sequences":    wide("\x30\x00"),
		"wide OIDs":         wide("\x06\x01\x2a"),
		"long length":       {0x30, 0x84, 0x7f, 0xff, 0xff, 0xff, 0, 0},
		"longer length":     {0x30, 0x88, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		"too long":          bytes.Repeat([]byte{0x30}, 16<<20),
		"zeros":             make([]byte, tsa.MaxToken),
	}
}

// allocated measures what f allocates, in bytes.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHostileInputsAreCheap: hostile bytes are refused without building
// anything from them.
func TestHostileInputsAreCheap(t *testing.T) {
	const most = 16 << 10
	for name, b := range hostileInputs() {
		t.Run(name, func(t *testing.T) {
			var errs [3]error
			n := allocated(func() {
				_, errs[0] = tsa.Verify(b, tsa.VerifyOptions{})
				_, _, errs[1] = tsa.ParseResponse(b)
				_, errs[2] = tsa.ParseRequest(b)
			})
			for i, err := range errs {
				if err == nil {
					t.Errorf("reader %d accepts it", i)
				}
			}
			if n > most {
				t.Errorf("%d bytes allocated, want at most %d", n, most)
			}
		})
	}
}

// TestStuffedTokenIsCheap: an accepted token stuffed with certificates up to
// the cap stays within a megabyte.
func TestStuffedTokenIsCheap(t *testing.T) {
	s := seeds(t)[0]
	for name, extra := range map[string][][]byte{
		"valid certificates":  repeat(certOf(t, s), tsa.MaxToken/2),
		"broken certificates": repeat(append([]byte{0x30, 0x82, 0x01, 0x00}, make([]byte, 256)...), tsa.MaxToken/2),
	} {
		t.Run(name, func(t *testing.T) {
			s.options.ExtraCerts = extra
			var err error
			if n := allocated(func() { _, err = s.judge(s.bytes) }); n > 1<<20 {
				t.Errorf("%d bytes allocated", n)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func certOf(t *testing.T, s seed) []byte {
	t.Helper()
	token, err := s.judge(s.bytes)
	if err != nil {
		t.Fatal(err)
	}
	return token.Signer.Raw
}

func repeat(b []byte, total int) (out [][]byte) {
	for n := 0; n < total; n += len(b) {
		out = append(out, b)
	}
	return out
}
