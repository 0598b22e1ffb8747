package witness

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// dirShards holds the shards after the first, each a folder with keys and a
// store of its own. The first lies in the data folder itself. A shard is
// complete when its name is there, and closes the one before it.
const dirShards = "shards"

// shard is where one shard of a log lies.
type shard struct {
	number int // from 1
	dir    string
}

// shardsOf lists the shards of a data folder, the one in force last. It fails
// with ErrNotInitialised when there is none.
func shardsOf(dir string) (all []shard, err error) {
	files, err := os.ReadDir(filepath.Join(dir, dirShards))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, fileFormat)); err == nil {
		all = append(all, shard{1, dir})
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, f := range files {
		if n, err := strconv.Atoi(f.Name()); err == nil && n > 1 && strconv.Itoa(n) == f.Name() {
			all = append(all, shard{n, filepath.Join(dir, dirShards, f.Name())})
		}
	}
	if len(all) == 0 {
		_, _, err := readDirFormat(dir)
		return nil, err
	}
	slices.SortFunc(all, func(a, b shard) int { return a.number - b.number })
	return all, nil
}

// inForce is the last shard of a data folder.
func inForce(dir string) (shard, error) {
	all, err := shardsOf(dir)
	if err != nil {
		return shard{}, err
	}
	return all[len(all)-1], nil
}

// nextName is the name of the shard after this one: NAME, NAME/2, NAME/3.
func (s shard) nextName(origin string) string {
	if s.number > 1 {
		origin = strings.TrimSuffix(origin, "/"+strconv.Itoa(s.number))
	}
	return origin + "/" + strconv.Itoa(s.number+1)
}

// identity is what FORMAT says: it outlives the private keys.
type identity struct {
	origin        string
	log, cosigner tlog.Vkey
}

func readIdentity(dir string) (id identity, err error) {
	origin, b, err := readDirFormat(dir)
	if err != nil {
		return id, err
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) != 5 {
		return id, fmt.Errorf("%s: %w: want two key lines", filepath.Join(dir, fileFormat), store.ErrDamaged)
	}
	id.origin = origin
	if id.log, err = tlog.ParseVkey(lines[2]); err == nil {
		id.cosigner, err = tlog.ParseVkey(lines[3])
	}
	if err == nil && !bytes.Equal(id.format(), b) {
		err = errors.New("other lines than name and keys")
	}
	if err != nil {
		return id, fmt.Errorf("%s: %w: %w", filepath.Join(dir, fileFormat), store.ErrDamaged, err)
	}
	return id, nil
}

// format is the file FORMAT: the log's name and keys. A key file that was
// exchanged would otherwise sign under a name that others pinned.
func (id identity) format() []byte {
	return append([]byte(dirFormat+"\norigin "+id.origin+"\n"), api.KeyLines(id.log, id.cosigner)...)
}

func (s *Server) identity() identity {
	return identity{s.origin, s.keys.log.Vkey(), s.keys.cosigner.Vkey()}
}

// formerShard is a closed shard: its log is read and never written.
type formerShard struct {
	shard
	identity
	server *Server // reads only: it has neither keys nor a sequencer
}

// openFormer opens the shards before the last one. One that cannot be opened
// does not keep the log from going on; that may be why it was closed.
func openFormer(o Options, all []shard) (former []formerShard) {
	for _, sh := range all {
		f := formerShard{shard: sh}
		var err error
		if f.identity, err = readIdentity(sh.dir); err == nil {
			f.server, err = openClosed(o, sh, f.origin)
		}
		if err != nil {
			o.Logger.Error("a former shard cannot be read", "shard", sh.number, "err", err)
		}
		former = append(former, f)
	}
	return former
}

func openClosed(o Options, sh shard, origin string) (*Server, error) {
	st, err := o.Engine(sh.dir)
	if err != nil {
		return nil, err
	}
	return &Server{o: o, origin: origin, shard: sh, store: st}, nil
}

func closeFormer(former []formerShard) error {
	var errs []error
	for _, f := range former {
		if f.server != nil {
			errs = append(errs, f.server.store.Close())
		}
	}
	return errors.Join(errs...)
}

// formerKey says whether a checkpoint is a former shard's.
func (s *Server) formerKey(cp tlog.Checkpoint, note tlog.Note) bool {
	for _, f := range s.former {
		if _, err := note.Verify(f.log); f.origin == cp.Origin && err == nil {
			return true
		}
	}
	return false
}

// formerRoutes serves each closed shard under /shards/<n>/, with the paths that
// it had while it was in force: old proofs can still be followed.
func (s *Server) formerRoutes(mux *http.ServeMux) {
	for _, f := range s.former {
		if f.server == nil {
			continue
		}
		prefix := "/shards/" + strconv.Itoa(f.number)
		inner := http.NewServeMux()
		f.server.readRoutes(inner)
		keys := api.KeyLines(f.log, f.cosigner)
		inner.HandleFunc("GET /vkey", func(w http.ResponseWriter, _ *http.Request) { send(w, typeText, cacheNever, keys) })
		mux.Handle("GET "+prefix+"/", http.StripPrefix(prefix, inner))
	}
}
