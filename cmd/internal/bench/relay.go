package bench

import (
	"context"
	"errors"
	"io"
	"os/exec"
)

// Relay runs the echo server of exe and copies bytes to it and back, without
// looking at them: the least that any process in between can cost.
func Relay(ctx context.Context, exe string, in io.Reader, out io.Writer) error {
	cmd := exec.CommandContext(ctx, exe, "bench", "echo")
	toServer, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	fromServer, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- errors.Join(pass(toServer, in), toServer.Close()) }()
	err = pass(out, fromServer)
	return errors.Join(err, <-sent, cmd.Wait())
}

// pass copies through our memory: the kernel could splice two pipes, and no
// router can let it.
func pass(to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 64<<10))
	return err
}
