//go:build unix

package backend

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// The socket between router and supervisor carries frames: four bytes of
// length, big endian, then JSON. The three pipe ends of a new process travel
// with the four bytes.
const maxFrame = 16 << 20

// order is what the router asks for. Its strings travel as bytes, since paths,
// arguments and variables need not be UTF-8.
type order struct {
	Op   string   `json:"op"` // "start", "closing" or "stop"
	ID   int64    `json:"id"`
	Path []byte   `json:"path,omitempty"`
	Argv [][]byte `json:"argv,omitempty"`
	Env  [][]byte `json:"env,omitempty"`
	Dir  []byte   `json:"dir,omitempty"`
}

func startOrder(path string, s Spec) order {
	argv := append([]string{s.Command}, s.Args...)
	return order{Op: "start", Path: []byte(path), Argv: toBytes(argv), Env: toBytes(s.Env), Dir: []byte(s.Dir)}
}

func toBytes(in []string) [][]byte {
	out := make([][]byte, len(in))
	for i, s := range in {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(in [][]byte) []string {
	out := make([]string, len(in))
	for i, b := range in {
		out[i] = string(b)
	}
	return out
}

// event is what the supervisor tells of the process with that id: exactly one
// of a pid, an error, that it is ready for a closing, and an exit.
type event struct {
	ID    int64  `json:"id"`
	PID   int    `json:"pid,omitempty"`
	Error string `json:"error,omitempty"`
	Ready bool   `json:"ready,omitempty"`
	Exit  *Exit  `json:"exit,omitempty"`
}

func writeFrame(c *net.UnixConn, v any, files ...*os.File) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("arguments and environment are %d bytes; at most %d fit", len(body), maxFrame)
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(body)))
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
			syscall.SetNonblock(fds[i], false) // programs expect blocking ends
		}
		rights = syscall.UnixRights(fds...)
	}
	if _, _, err := c.WriteMsgUnix(head[:], rights, nil); err != nil {
		return err
	}
	_, err = c.Write(body)
	return err
}

// readFrame reads into v and returns the descriptors that came with it, which
// the caller owns and which no child inherits.
func readFrame(c *net.UnixConn, v any) (fds []int, err error) {
	var head [4]byte
	oob := make([]byte, syscall.CmsgSpace(3*4))
	n, oobn, _, _, err := c.ReadMsgUnix(head[:], oob)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, io.EOF
	}
	defer func() {
		if err != nil {
			closeAll(fds)
		}
	}()
	if fds, err = parseRights(oob[:oobn]); err != nil {
		return nil, err
	}
	if _, err = io.ReadFull(c, head[n:]); err != nil {
		return fds, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return fds, fmt.Errorf("frame of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err = io.ReadFull(c, body); err != nil {
		return fds, err
	}
	return fds, json.Unmarshal(body, v)
}

func parseRights(oob []byte) ([]int, error) {
	if len(oob) == 0 {
		return nil, nil
	}
	msgs, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var fds []int
	for i := range msgs {
		got, err := syscall.ParseUnixRights(&msgs[i])
		if err != nil {
			return fds, err
		}
		fds = append(fds, got...)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		syscall.Close(fd)
	}
}
