package cl100k

import (
	"encoding/json"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Name is the encoding's, as reports say it.
const Name = "cl100k_base"

// Counter counts tokens. It is safe for one goroutine.
type Counter struct{ codec *codec.Codec }

// New reads the vocabulary, once a process.
func New() Counter { return Counter{codec.NewCl100kBase()} }

// Text is the number of tokens of a text.
func (c Counter) Text(s string) (int, error) { return c.codec.Count(s) }

// Functions is the number of tokens of definitions as a model is shown them;
// 0 where there are none.
func (c Counter) Functions(definitions []json.RawMessage) (int, error) {
	if len(definitions) == 0 {
		return 0, nil
	}
	return c.Text(FunctionsText(definitions))
}
