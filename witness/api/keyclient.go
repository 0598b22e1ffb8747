package api

import "context"

// Key posts a key note that replaces an enrolled key. Sent again after a lost
// answer it gives the same leaf index.
func (c *Client) Key(ctx context.Context, note []byte) (index uint64, err error) {
	return c.postIndex(ctx, "/key", note)
}
