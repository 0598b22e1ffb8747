package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// listenOptions are the flags of every command that listens.
type listenOptions struct {
	addr     string
	addrFile string
	cert     string // PEM; empty: plain HTTP
	key      string
}

func (l *listenOptions) flags(c *cobra.Command) {
	c.Flags().StringVar(&l.addr, "listen", "127.0.0.1:8790", "host:port; port 0 picks a free one; loopback unless you say otherwise")
	c.Flags().StringVar(&l.cert, "tls-cert", "", "PEM file with the server's certificate and its chain: serve HTTPS; read again when it changes")
	c.Flags().StringVar(&l.key, "tls-key", "", "PEM file with its private key")
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	c.Flags().StringVar(&l.addrFile, "addr-file", "", "write the address in use to this file once it accepts connections")
}

// open binds the address. Without a host it means loopback.
func (l listenOptions) open() (net.Listener, error) {
	host, port, err := net.SplitHostPort(l.addr)
	if err != nil {
		return nil, usagef("--listen %q: %v; use host:port such as 127.0.0.1:8790", l.addr, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: another program has that port; stop it or choose another with --listen, port 0 for any free one", err)
	}
	return ln, err
}

// listenAndServe serves until ctx ends, then lets running requests finish.
func (a *app) listenAndServe(ctx context.Context, l listenOptions, h http.Handler) error {
	secure, err := l.tls()
	if err != nil {
		return err
	}
	ln, err := l.open()
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 2 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		TLSConfig: secure, ErrorLog: slog.NewLogLogger(a.logger().Handler(), slog.LevelDebug)}
	if err := a.announce(ln, l); err != nil {
		return errors.Join(err, ln.Close())
	}
	failed := make(chan error, 1)
	go func() {
		if secure != nil {
			failed <- srv.ServeTLS(ln, "", "")
			return
		}
		failed <- srv.Serve(ln)
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return srv.Shutdown(grace)
}

// announce says where we listen, on stderr and in the address file, which is
// renamed into place so that a reader never sees half of it.
func (a *app) announce(ln net.Listener, l listenOptions) error {
	url := l.scheme() + "://" + ln.Addr().String()
	a.say("listening on %s", url)
	if l.addrFile == "" {
		return nil
	}
	tmp := filepath.Join(filepath.Dir(l.addrFile), "."+filepath.Base(l.addrFile)+".new")
	if err := os.WriteFile(tmp, []byte(url+"\n"), 0o644); err != nil {
		return fmt.Errorf("write the address file: %w", err)
	}
	return os.Rename(tmp, l.addrFile)
}
