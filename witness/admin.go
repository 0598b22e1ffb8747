package witness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"toolguardian/witness/api"
	"toolguardian/witness/store"
)

// Operator is what the person who runs the witness may do, whether the server
// runs or not.
type Operator interface {
	NewToken(ctx context.Context) (string, error)
	AddAgent(ctx context.Context, vkey string) (index uint64, err error)
	RevokeAgent(ctx context.Context, origin string, since api.Ref) (index uint64, err error)
	RotateAgent(ctx context.Context, vkey string, fromSize uint64) (index uint64, err error)
	Agents(ctx context.Context) ([]Agent, error)
	Status(ctx context.Context) (Status, error)
	Fsck(ctx context.Context) (FsckReport, error)
	// Backup copies the log, never a key, into the new file path.
	Backup(ctx context.Context, path string) (BackupInfo, error)
	// ConfirmClock tells that the clock, which was in doubt, is right now.
	ConfirmClock() error
	Close() error
}

// Operate speaks to the server that holds o.Dir through its admin socket, or,
// when none answers, opens the folder itself.
func Operate(ctx context.Context, o Options) (Operator, error) {
	if remote, err := dialAdmin(ctx, o.Dir); err == nil {
		return remote, nil
	}
	s, err := open(o)
	if errors.Is(err, store.ErrLocked) {
		// The server was just starting: its socket comes after its lock.
		if remote, dialErr := dialAdmin(ctx, o.Dir); dialErr == nil {
			return remote, nil
		}
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	local := &localOperator{Server: s, cancel: cancel, done: make(chan error, 1)}
	go func() { local.done <- s.seq.run(ctx) }()
	return local, nil
}

// localOperator is a server of which only the sequencer runs.
type localOperator struct {
	*Server
	cancel context.CancelFunc
	done   chan error
}

func (l *localOperator) Close() error {
	l.cancel()
	return errors.Join(<-l.done, l.Server.Close())
}

// socketPath keeps the admin socket's name within the 108 bytes of a socket
// address: a long folder is reached through a descriptor of it.
func socketPath(dir string) (path string, release func(), err error) {
	const most = 100
	path = filepath.Join(dir, fileSocket)
	if len(path) <= most {
		return path, func() {}, nil
	}
	if runtime.GOOS != "linux" {
		return "", nil, fmt.Errorf("admin socket: the path %s is longer than %d bytes; use a shorter folder", path, most)
	}
	f, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), fileSocket), func() { f.Close() }, nil
}

// listenAdmin makes the socket. We hold the store's lock, so a socket that is
// there is a dead process's.
func (s *Server) listenAdmin() (net.Listener, error) {
	path, release, err := socketPath(s.o.Dir)
	if err != nil {
		return nil, err
	}
	defer release()
	// The name appears when the mode is right.
	beside := path + ".new"
	if err := os.Remove(beside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	l, err := net.Listen("unix", beside)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	// The name may go through a descriptor that is closed by then.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(beside, 0o600), os.Rename(beside, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("admin socket: %w", err), l.Close())
	}
	return l, nil
}

func (s *Server) serveAdmin(ctx context.Context, l net.Listener) error {
	srv := &http.Server{Handler: s.adminHandler(), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("admin socket: %w", err)
	case <-ctx.Done():
	}
	err := errors.Join(srv.Close(), os.Remove(filepath.Join(s.o.Dir, fileSocket)))
	<-done
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Server) adminHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		token, err := s.NewToken(r.Context())
		s.adminReply(w, r, token, err)
	})
	mux.HandleFunc("POST /agents", func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		index, err := s.AddAgent(r.Context(), strings.TrimSpace(string(body)))
		s.adminReply(w, r, strconv.FormatUint(index, 10), err)
	})
	mux.HandleFunc("POST /backup", s.adminBackup)
	mux.HandleFunc("POST /clock", func(w http.ResponseWriter, r *http.Request) { s.adminReply(w, r, "", s.ConfirmClock()) })
	mux.HandleFunc("POST /agents/revoke", s.adminRevoke)
	mux.HandleFunc("POST /agents/rotate", s.adminRotate)
	mux.HandleFunc("GET /agents", adminJSON(s, s.Agents))
	mux.HandleFunc("GET /status", adminJSON(s, s.Status))
	mux.HandleFunc("GET /fsck", adminJSON(s, s.Fsck))
	return mux
}

func (s *Server) adminReply(w http.ResponseWriter, r *http.Request, text string, err error) {
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	send(w, typeText, cacheNever, []byte(text))
}

func adminJSON[T any](s *Server, get func(context.Context) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := get(r.Context())
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		b, err := json.Marshal(v)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		send(w, "application/json", cacheNever, b)
	}
}

// remoteOperator speaks over the admin socket.
type remoteOperator struct {
	http    *http.Client
	release func()
}

// dialAdmin fails unless a server answers.
func dialAdmin(ctx context.Context, dir string) (*remoteOperator, error) {
	path, release, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	c := &remoteOperator{http: &http.Client{Transport: &http.Transport{DialContext: dial}}, release: release}
	if _, err := c.Status(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *remoteOperator) do(ctx context.Context, method, path, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://witness"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, api.ErrorOf(resp, b)
	}
	return b, nil
}

func getAdmin[T any](ctx context.Context, c *remoteOperator, path string) (v T, err error) {
	b, err := c.do(ctx, http.MethodGet, path, "")
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(b, &v)
}

func (c *remoteOperator) NewToken(ctx context.Context) (string, error) {
	b, err := c.do(ctx, http.MethodPost, "/token", "")
	return string(b), err
}

func (c *remoteOperator) AddAgent(ctx context.Context, vkey string) (uint64, error) {
	b, err := c.do(ctx, http.MethodPost, "/agents", vkey)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(b), 10, 64)
}

func (c *remoteOperator) Agents(ctx context.Context) ([]Agent, error) {
	return getAdmin[[]Agent](ctx, c, "/agents")
}

func (c *remoteOperator) Status(ctx context.Context) (Status, error) {
	return getAdmin[Status](ctx, c, "/status")
}

func (c *remoteOperator) Fsck(ctx context.Context) (FsckReport, error) {
	return getAdmin[FsckReport](ctx, c, "/fsck")
}

func (c *remoteOperator) ConfirmClock() error {
	_, err := c.do(context.Background(), http.MethodPost, "/clock", "")
	return err
}

func (c *remoteOperator) Close() error {
	c.http.CloseIdleConnections()
	c.release()
	return nil
}
