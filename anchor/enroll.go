package anchor

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"toolguardian/chain"
	"toolguardian/chain/tlog"
	"toolguardian/witness/api"
)

// NoteSigner is the part of a chain that enrols. *chain.Chain is one.
type NoteSigner interface {
	Origin() string
	HeadKey() tlog.Vkey
	KeyNotes() ([]chain.KeyNote, error)
	SignNote(text []byte) ([]byte, error)
}

// Enrolment is what Enroll needs. The witness's keys are pinned by Token or by
// Keys, never taken from the witness alone.
type Enrolment struct {
	Dir   string // evidence folder
	URL   string
	Token string      // tg1.…, printed by witness token
	Keys  []tlog.Vkey // without a token: the 01 line and the 04 line, or the 04 line of a C2SP witness alone
	HTTP  *http.Client
}

// Enroll makes the chain known to a witness and keeps the witness's pinned keys
// durably. Enrolling again is harmless.
func Enroll(ctx context.Context, c NoteSigner, e Enrolment) (Witness, error) {
	w := Witness{Origin: c.Origin(), URL: e.URL}
	client := api.New(e.URL, e.HTTP)
	if err := w.pin(ctx, client, e); err != nil {
		return Witness{}, fmt.Errorf("enroll at %s: %w", e.URL, err)
	}
	if w.Log != nil {
		// The first key enrols; the streamer tells of those that followed it.
		notes, err := c.KeyNotes()
		if err != nil {
			return Witness{}, fmt.Errorf("enroll at %s: %w", e.URL, err)
		}
		if _, err := client.Enroll(ctx, e.Token, notes[0].Note); err != nil {
			return Witness{}, fmt.Errorf("enroll at %s: %w", e.URL, err)
		}
	}
	return w, w.save(e.Dir)
}

// pin settles the witness's keys.
func (w *Witness) pin(ctx context.Context, client *api.Client, e Enrolment) error {
	var log *tlog.Vkey
	var cosigner *tlog.Vkey
	for i, k := range e.Keys {
		switch k.Type {
		case tlog.KeyEd25519:
			log = &e.Keys[i]
		case tlog.KeyCosignature:
			cosigner = &e.Keys[i]
		}
	}
	if e.Token == "" {
		if cosigner == nil {
			return errors.New("no token and no cosigner key: give the token that witness token printed, or both lines of its /vkey that you were told")
		}
		w.Log, w.Cosigner = log, *cosigner
		return nil
	}
	token, err := api.ParseToken(e.Token)
	if err != nil {
		return err
	}
	theirLog, theirCosigner, err := client.Vkeys(ctx)
	if err != nil {
		return err
	}
	if !token.Matches(theirLog, theirCosigner) {
		return fmt.Errorf("%w: it has other keys than the token was made for: nothing was sent", api.ErrForbidden)
	}
	w.Log, w.Cosigner = &theirLog, theirCosigner
	return nil
}
