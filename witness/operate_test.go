package witness_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolguardian/chain/tlog"
	"toolguardian/witness"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
	"toolguardian/witness/store/bolt"
)

func operate(t *testing.T, o witness.Options) witness.Operator {
	t.Helper()
	op, err := witness.Operate(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// The operator's commands do the same whether the server runs or not.
func TestOperator(t *testing.T) {
	for _, serving := range []bool{true, false} {
		t.Run(map[bool]string{true: "serving", false: "offline"}[serving], func(t *testing.T) {
			r := newRig(t)
			if !serving {
				if err := r.end(); err != nil {
					t.Fatal(err)
				}
			}
			ctx := context.Background()
			a, b := newAgent(t), newAgent(t)
			op := operate(t, r.o)
			token, err := op.NewToken(ctx)
			if err != nil {
				t.Fatal(err)
			}
			index, err := op.AddAgent(ctx, a.signer.Vkey().String())
			if err != nil || index != 0 {
				t.Errorf("add agent: %d, %v", index, err)
			}
			if _, err := op.AddAgent(ctx, "nonsense"); !errors.Is(err, api.ErrBadRequest) {
				t.Errorf("add nonsense: %v, want ErrBadRequest", err)
			}
			agents, err := op.Agents(ctx)
			if err != nil || len(agents) != 1 || agents[0].Origin != a.origin() {
				t.Errorf("agents %+v, %v", agents, err)
			}
			st, err := op.Status(ctx)
			if err != nil || st.Origin != logName || st.Size != 1 || st.Agents != 1 {
				t.Errorf("status %+v, %v", st, err)
			}
			report, err := op.Fsck(ctx)
			if err != nil || !report.OK() || report.Size != 1 || report.Checkpoints != 2 {
				t.Errorf("fsck %+v, %v", report, err)
			}
			if err := op.Close(); err != nil {
				t.Fatal(err)
			}
			if !serving {
				r.start()
			}
			if _, err := r.client.Enroll(ctx, token, b.enrolNote()); err != nil {
				t.Errorf("the token: %v", err)
			}
		})
	}
}

// A folder's path may be longer than a socket's address.
func TestOperatorOfALongFolder(t *testing.T) {
	r := newRig(t, func(o *witness.Options) {
		o.Dir = filepath.Join(t.TempDir(), strings.Repeat("long", 30), "witness")
		if err := witness.Init(o.Dir, logName, o.Engine); err != nil {
			t.Fatal(err)
		}
	})
	op := operate(t, r.o)
	defer op.Close()
	if _, err := op.NewToken(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestPrivateFiles(t *testing.T) {
	r := newRig(t, withBuiltIn)
	if err := operate(t, r.o).Close(); err != nil { // the socket is there then
		t.Fatal(err)
	}
	err := filepath.WalkDir(r.o.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if perm := info.Mode().Perm(); perm != want && !strings.HasSuffix(path, ".pem") {
			t.Errorf("%s: mode %v, want %v", path, perm, want)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestInitRefusals(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := witness.Init(full, logName, bolt.OpenDir); err == nil {
		t.Error("init over a folder that is not empty")
	}
	empty := t.TempDir()
	for _, name := range []string{"", "a b", "a+b", "agents.invalid/c/" + strings.Repeat("0", 32)} {
		if err := witness.Init(empty, name, bolt.OpenDir); err == nil {
			t.Errorf("init of the name %q", name)
		}
	}
	if err := witness.Init(empty, logName, bolt.OpenDir); err != nil {
		t.Errorf("init of an empty folder: %v", err)
	}
	if err := witness.Init(empty, logName, bolt.OpenDir); err == nil {
		t.Error("init over a witness")
	}
	_, err := witness.New(witness.Options{Dir: t.TempDir(), Engine: bolt.OpenDir})
	if !errors.Is(err, witness.ErrNotInitialised) || !strings.Contains(err.Error(), "witness init") {
		t.Errorf("new without init: %v, want ErrNotInitialised with the command", err)
	}
}

func TestNewerFolderIsRefused(t *testing.T) {
	r := newRig(t)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.o.Dir, "FORMAT")
	format := readFile(t, path)
	for text, want := range map[string]error{
		"tool-guardian/witness/2\norigin x\n": store.ErrVersion,
		"tool-guardian/witness/1\n":           store.ErrDamaged,
		"":                                    store.ErrVersion,
	} {
		writeFile(t, path, []byte(text))
		if _, err := witness.New(r.o); !errors.Is(err, want) {
			t.Errorf("FORMAT %q: %v, want %v", text, err, want)
		}
	}
	writeFile(t, path, format)
}

// Keys that are not those of the log must not sign on it.
func TestForeignKeysAreRefused(t *testing.T) {
	r := newRig(t)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	log, cosigner := filepath.Join(r.o.Dir, "log.key"), filepath.Join(r.o.Dir, "cosigner.key")
	for _, pair := range [][2]string{{log, cosigner}, {cosigner, log}} {
		kept := readFile(t, pair[0])
		writeFile(t, pair[0], readFile(t, pair[1]))
		if _, err := witness.New(r.o); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%s was exchanged: %v, want ErrDamaged", filepath.Base(pair[0]), err)
		}
		writeFile(t, pair[0], kept)
	}
}

func TestSecondServerIsRefused(t *testing.T) {
	r := newRig(t)
	if _, err := witness.New(r.o); !errors.Is(err, store.ErrLocked) {
		t.Errorf("second server: %v, want ErrLocked", err)
	}
}

func TestOpenKeyIsRefused(t *testing.T) {
	r := newRig(t)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(r.o.Dir, "log.key")
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := witness.New(r.o); err == nil || !strings.Contains(err.Error(), "600") {
		t.Errorf("a key that others can read: %v, want the chmod to do", err)
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A folder restored from an old copy, or grown into another history, is
// refused before anything is signed over it.
func TestHeadFileDetectsRollback(t *testing.T) {
	head := filepath.Join(t.TempDir(), "head")
	r := newRig(t, func(o *witness.Options) { o.HeadFile = head })
	a := r.enrolled().grow(9, "")
	r.add(a, 0, 3)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	old := readFile(t, filepath.Join(r.o.Dir, "log.db"))
	r.start()
	r.add(a, 3, 5)
	want := r.status().Checkpoint
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if got := string(readFile(t, head)); got != want {
		t.Fatalf("after a stop the head file has\n%s, want\n%s", got, want)
	}
	now := readFile(t, filepath.Join(r.o.Dir, "log.db"))

	writeFile(t, filepath.Join(r.o.Dir, "log.db"), old)
	if err := r.tryStart(); !errors.Is(err, witness.ErrRolledBack) {
		t.Errorf("an old copy: %v, want ErrRolledBack", err)
	}

	// The old copy goes on in secret, to the same size with other leaves.
	headless := r.o
	headless.HeadFile = ""
	secret := &rig{t: t, o: headless}
	secret.start()
	secret.add(a, 3, 4)
	secret.add(a, 4, 5)
	if err := secret.end(); err != nil {
		t.Fatal(err)
	}
	if err := r.tryStart(); !errors.Is(err, witness.ErrRolledBack) {
		t.Errorf("another history: %v, want ErrRolledBack", err)
	}

	writeFile(t, filepath.Join(r.o.Dir, "log.db"), now)
	r.start()
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// flipped shows one entry, tile hash or value with one bit changed.
type flipped struct {
	store.Store
	entry *uint64
	tile  *tlog.TileID
	hash  int
	table store.Table
	key   []byte
}

func (f *flipped) View(fn func(store.Reader) error) error {
	return f.Store.View(func(r store.Reader) error { return fn(flippedReader{r, f}) })
}

type flippedReader struct {
	store.Reader
	f *flipped
}

func (r flippedReader) Entries(index uint64, n int) ([][]byte, error) {
	entries, err := r.Reader.Entries(index, n)
	if e := r.f.entry; err == nil && e != nil && *e >= index && *e < index+uint64(n) {
		b := entries[*e-index]
		b[len(b)-1] ^= 1
	}
	return entries, err
}

func (r flippedReader) ReadTile(id tlog.TileID, width int) ([]byte, error) {
	b, err := r.Reader.ReadTile(id, width)
	if err == nil && r.f.tile != nil && *r.f.tile == id && width > r.f.hash {
		b[r.f.hash*tlog.HashSize] ^= 1
	}
	return b, err
}

func (r flippedReader) Get(t store.Table, key []byte) ([]byte, error) {
	b, err := r.Reader.Get(t, key)
	if err == nil && t == r.f.table && string(key) == string(r.f.key) {
		b[len(b)/2] ^= 1
	}
	return b, err
}

func (r flippedReader) Scan(t store.Table, from []byte, fn func(key, value []byte) bool) error {
	return r.Reader.Scan(t, from, func(key, value []byte) bool {
		if t == r.f.table && string(key) == string(r.f.key) {
			value = append([]byte(nil), value...)
			value[len(value)/2] ^= 1
		}
		return fn(key, value)
	})
}

// A flipped bit anywhere is found and located.
func TestFsckLocatesAFlippedBit(t *testing.T) {
	f := &flipped{}
	r := newRig(t, withBuiltIn, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { f.Store = s; return f })
	})
	a := r.enrolled().grow(300, "")
	for i := range int64(260) {
		r.add(a, i, i+1)
	}
	if err := r.server.Stamp(context.Background()); err != nil {
		t.Fatal(err)
	}
	at := func(n uint64) *uint64 { return &n }
	var token []byte
	if st, err := r.client.TimestampFrom(context.Background(), 1); err != nil {
		t.Fatal(err)
	} else {
		_, entries := newMonitor(t, mustLog(r)).follow(r.client)
		hash := timeLeafOf(t, entries, st).Token
		token = hash[:]
	}
	tests := []struct {
		name string
		flip flipped
		want string
	}{
		{"entry", flipped{entry: at(17)}, "entry 17"},
		{"last entry", flipped{entry: at(258)}, "entry 258"},
		{"hash of a full tile", flipped{tile: &tlog.TileID{}, hash: 200}, "tile 0/0 hash 200"},
		{"hash of a partial tile", flipped{tile: &tlog.TileID{Index: 1}, hash: 2}, "tile 0/1 hash 2"},
		{"hash of level 1", flipped{tile: &tlog.TileID{Level: 1}}, "tile 1/0 hash 0"},
		{"checkpoint", flipped{table: store.Checkpoints, key: store.Key64(100)}, "checkpoint 100"},
		{"token", flipped{table: store.Blobs, key: token}, "timestamp "},
		{"head of a chain", flipped{table: store.Origins, key: originSum(a.origin())}, "origin record"},
		{"index of heads", flipped{table: store.Heads, key: append(originSum(a.origin()), store.Key64(99)...)}, "by its size 99"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kept := f.Store
			*f = test.flip
			f.Store = kept
			report, err := r.server.Fsck(context.Background())
			*f = flipped{Store: kept}
			if err != nil || report.OK() {
				t.Fatalf("fsck found nothing: %+v, %v", report, err)
			}
			if !strings.Contains(faultsOf(report), test.want) {
				t.Errorf("fsck does not name %q: %s", test.want, faultsOf(report))
			}
		})
	}
}

func originSum(origin string) []byte {
	sum := sha256.Sum256([]byte(origin))
	return sum[:]
}

func faultsOf(r witness.FsckReport) string {
	var b strings.Builder
	for _, f := range r.Faults {
		b.WriteString(f.Where + ": " + f.Detail + "\n")
	}
	return b.String()
}

// A tile that changed on disk is noticed before anything is signed over it.
func TestDamagedTileIsNotSignedOver(t *testing.T) {
	f := &flipped{}
	r := newRig(t, func(o *witness.Options) {
		o.Engine = engineOf(func(s store.Store) store.Store { f.Store = s; return f })
	})
	a := r.enrolled().grow(5, "")
	r.add(a, 0, 1)
	before := r.status().Checkpoint
	f.tile = &tlog.TileID{}
	if _, err := r.server.AddCheckpoint(context.Background(), a.body(1, 2)); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("a head over a damaged tile: %v, want ErrUnavailable", err)
	}
	if got := r.status().Checkpoint; got != before {
		t.Errorf("a checkpoint was signed over a damaged tile:\n%s", got)
	}
	if err := r.end(); !errors.Is(err, witness.ErrFatal) || !errors.Is(err, store.ErrDamaged) {
		t.Errorf("run: %v, want ErrFatal and ErrDamaged", err)
	}
	if err := r.tryStart(); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("start over a damaged tile: %v, want ErrDamaged", err)
	}
	f.tile = nil
	r.start()
}
