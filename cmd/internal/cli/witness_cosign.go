package cli

import (
	"toolguardian/chain/tlog"
	"toolguardian/witness"
)

// cosigning reads the words about other witnesses and other logs.
func (f serveFlags) cosigning(o *witness.Options) error {
	if f.cosigners != "" {
		b, err := readInput(f.cosigners)
		if err != nil {
			return err
		}
		if o.Cosigners, err = tlog.ParsePolicy(b); err != nil {
			return usagef("--cosigners %s: %v", f.cosigners, err)
		}
	}
	for _, word := range f.cosignLogs {
		key, err := tlog.ParseVkey(word)
		if err != nil || key.Type != tlog.KeyEd25519 {
			return usagef("--cosign-log %s: want a log's key of type 01: %v", word, err)
		}
		o.CosignLogs = append(o.CosignLogs, key)
	}
	return nil
}
