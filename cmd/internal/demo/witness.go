package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"toolguardian/anchor"
	"toolguardian/witness/api"
)

// witnessKeys are the witness's public keys, as its operator hands them out.
type witnessKeys struct{ log, cosigner string }

func (s *story) startWitness(ctx context.Context) (err error) {
	out, _, err := s.run(ctx, "witness", "init", "--data", s.path("witness"), "--origin", "witness.demo.invalid/log")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		switch name, key, _ := strings.Cut(strings.TrimSpace(line), " "); name {
		case "log":
			s.keys.log = strings.TrimSpace(key)
		case "cosigner":
			s.keys.cosigner = strings.TrimSpace(key)
		}
	}
	if s.keys.log == "" || s.keys.cosigner == "" {
		return fmt.Errorf("witness init printed no keys:\n%s", out)
	}
	s.witness, err = s.background(ctx, "witness", "serve", "--data", s.path("witness"), "--head-file", s.path("witness.head"),
		"--listen", "127.0.0.1:0", "--addr-file", s.path("witness.url"), "--stamp-every", "1s")
	if err != nil {
		return err
	}
	err = await(ctx, "the witness starts", func() (bool, error) {
		b, err := os.ReadFile(s.path("witness.url"))
		s.url = strings.TrimSpace(string(b))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	})
	s.line("  listening on %s, process %d", s.url, s.witness.cmd.Process.Pid)
	return err
}

func (s *story) enrol(ctx context.Context) error {
	s.shell([]string{"witness", "token", "--data", "witness"})
	token, _, err := s.quiet(ctx, "witness", "token", "--data", s.path("witness"))
	if err != nil {
		return err
	}
	token = strings.TrimSpace(token)
	s.line("  %s… (one use, 24 hours, names the witness's keys)", token[:min(16, len(token))])
	out, _, err := s.run(ctx, "anchor", "enroll", "--witness", s.url, "--token", token,
		"--tsa-ca", s.path("witness", "tsa", "root.pem"))
	if err != nil {
		return err
	}
	if name, key, _ := strings.Cut(strings.SplitN(out, "\n", 2)[0], " "); name == "chain" {
		s.chain = strings.TrimSpace(key)
	}
	if s.chain == "" {
		return fmt.Errorf("anchor enroll printed no chain key:\n%s", out)
	}
	s.origin, err = anchor.OriginOf(s.path("agent", "evidence"))
	return err
}

func (s *story) receipts(ctx context.Context) error {
	_, _, err := s.run(ctx, "receipts", "list")
	if err != nil {
		return err
	}
	s.line("  Arguments and results are not in there, only salted commitments to their bytes.")
	return nil
}

// witnessed waits until the last head is cosigned and timestamped, and shows
// the witness's checkpoint.
func (s *story) witnessed(ctx context.Context) error {
	if _, _, err := s.run(ctx, "anchor", "push"); err != nil {
		return err
	}
	c := api.New(s.url, nil)
	_, index, err := c.Head(ctx, s.origin)
	if err != nil {
		return err
	}
	err = await(ctx, "the witness timestamps the head", func() (bool, error) {
		_, err := c.TimestampFrom(ctx, index+1)
		if errors.Is(err, api.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	checkpoint, err := c.Checkpoint(ctx)
	if err != nil {
		return err
	}
	s.line("$ curl %s/checkpoint", s.url)
	s.indent(string(checkpoint))
	return nil
}

// verifyArgs are an auditor's words: the copy, the witness, and the keys that
// the auditor got from both operators beforehand.
func (s *story) verifyArgs(target string) []string {
	return []string{"verify", target, "--against", s.url, "--witness-key", s.keys.log, "--witness-key", s.keys.cosigner,
		"--chain-key", s.chain, "--tsa-ca", s.path("witness", "tsa", "root.pem")}
}

func (s *story) verify(ctx context.Context) error {
	out, code, err := s.run(ctx, s.verifyArgs(s.path("agent", "evidence"))...)
	if err == nil && code != 0 {
		err = fmt.Errorf("the honest chain was not passed: exit %d\n%s", code, out)
	}
	return err
}
