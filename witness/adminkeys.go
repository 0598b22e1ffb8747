package witness

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"toolguardian/witness/api"
)

// The operator's acts on keys over the admin socket: two lines, the second a
// number or none; the answer is the index of the key leaf.

func (s *Server) adminRevoke(w http.ResponseWriter, r *http.Request) {
	s.adminKeyAct(w, r, func(origin string, since api.Ref) (uint64, error) { return s.RevokeAgent(r.Context(), origin, since) })
}

func (s *Server) adminRotate(w http.ResponseWriter, r *http.Request) {
	s.adminKeyAct(w, r, func(vkey string, from api.Ref) (uint64, error) { return s.RotateAgent(r.Context(), vkey, from.Index) })
}

func (s *Server) adminKeyAct(w http.ResponseWriter, r *http.Request, act func(string, api.Ref) (uint64, error)) {
	body, err := readBody(w, r)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	what, number, err := parseKeyAct(string(body))
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	index, err := act(what, number)
	s.adminReply(w, r, strconv.FormatUint(index, 10), err)
}

func parseKeyAct(body string) (what string, number api.Ref, err error) {
	what, second, _ := strings.Cut(body, "\n")
	if second = strings.TrimSuffix(second, "\n"); second == "none" {
		return what, number, nil
	}
	n, err := strconv.ParseUint(second, 10, 63)
	if err != nil {
		return what, number, fmt.Errorf("%w: %.80q is no number", api.ErrBadRequest, second)
	}
	return what, api.At(n), nil
}

func (c *remoteOperator) RevokeAgent(ctx context.Context, origin string, since api.Ref) (uint64, error) {
	return c.keyAct(ctx, "/agents/revoke", origin, since)
}

func (c *remoteOperator) RotateAgent(ctx context.Context, vkey string, fromSize uint64) (uint64, error) {
	return c.keyAct(ctx, "/agents/rotate", vkey, api.At(fromSize))
}

func (c *remoteOperator) keyAct(ctx context.Context, path, what string, number api.Ref) (uint64, error) {
	b, err := c.do(ctx, http.MethodPost, path, fmt.Sprintf("%s\n%s\n", what, number))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(b), 10, 64)
}
