package tlog

import (
	"crypto/ed25519"
	"errors"
	"time"
)

var errStub = errors.New("tlog: not written yet")

const TileWidth = 256

type TileID struct {
	Level int
	Index uint64
}
type TileReader interface {
	ReadTile(id TileID, width int) ([]byte, error)
}

func (t TileID) Path(width int) string                                { return "" }
func ParseTilePath(p string) (TileID, int, error)                     { return TileID{}, 0, errStub }
func WidthAt(id TileID, size uint64) int                              { return 0 }
func TreeRoot(size uint64, r TileReader) (Hash, error)                { return Hash{}, errStub }
func ProveInclusion(index, size uint64, r TileReader) ([]Hash, error) { return nil, errStub }
func ProveConsistency(m, n uint64, r TileReader) ([]Hash, error)      { return nil, errStub }
func VerifyInclusion(leaf Hash, index, size uint64, proof []Hash, root Hash) error {
	return errStub
}
func VerifyConsistency(m, n uint64, proof []Hash, mRoot, nRoot Hash) error { return errStub }
func Grow(size uint64, leaves []Hash, r TileReader) (changed map[TileID][]byte, root Hash, err error) {
	return nil, Hash{}, errStub
}

type Frontier struct{ size uint64 }

func NewFrontier(size uint64, r TileReader) (*Frontier, error) { return nil, errStub }
func (f *Frontier) Append(leaf Hash)                           {}
func (f *Frontier) Size() uint64                               { return f.size }
func (f *Frontier) Root() Hash                                 { return Hash{} }
func (f *Frontier) Clone() *Frontier                           { c := *f; return &c }

func SplitBundle(b []byte) ([][]byte, error)         { return nil, errStub }
func AppendBundle(dst, entry []byte) ([]byte, error) { return nil, errStub }

type KeyType byte

const (
	KeyEd25519     KeyType = 0x01
	KeyCosignature KeyType = 0x04
	KeyMLDSA44     KeyType = 0x06
)

type Vkey struct {
	Name string
	ID   uint32
	Type KeyType
	Key  []byte
}

func ParseVkey(s string) (Vkey, error)                                    { return Vkey{}, errStub }
func NewVkey(name string, t KeyType, pub ed25519.PublicKey) (Vkey, error) { return Vkey{}, errStub }
func (v Vkey) String() string                                             { return "" }
func (v Vkey) Equal(w Vkey) bool                                          { return false }
func (v Vkey) Public() ed25519.PublicKey                                  { return nil }

type Signer struct{}

func NewSigner(name string, t KeyType, priv ed25519.PrivateKey) (*Signer, error) { return nil, errStub }
func (s *Signer) Vkey() Vkey                                                     { return Vkey{} }
func (s *Signer) Sign(text []byte) (Signature, error)                            { return Signature{}, errStub }
func (s *Signer) Cosign(text []byte, at time.Time) (Signature, error)            { return Signature{}, errStub }

func GenerateKey() (ed25519.PrivateKey, error)              { return nil, errStub }
func MarshalPrivateKey(k ed25519.PrivateKey) []byte         { return nil }
func ParsePrivateKey(b []byte) (ed25519.PrivateKey, error)  { return nil, errStub }
func LoadKeyFile(path string) (ed25519.PrivateKey, error)   { return nil, errStub }
func CreateKeyFile(path string) (ed25519.PrivateKey, error) { return nil, errStub }

type Signature struct {
	Name  string
	ID    uint32
	Bytes []byte
}

func (s Signature) Line() string                        { return "" }
func (s Signature) Time() (time.Time, bool)             { return time.Time{}, false }
func ParseSignatureLines(b []byte) ([]Signature, error) { return nil, errStub }

type Note struct {
	Text       []byte
	Signatures []Signature
}

var (
	ErrNoSignature  = errors.New("no signature by this key")
	ErrBadSignature = errors.New("signature does not verify")
)

func ParseNote(b []byte) (Note, error)             { return Note{}, errStub }
func (n Note) Bytes() []byte                       { return nil }
func (n Note) Verify(k Vkey) (Signature, error)    { return Signature{}, errStub }
func (n Note) Only(keep func(Signature) bool) Note { return Note{} }

type Checkpoint struct {
	Origin string
	Size   uint64
	Root   Hash
}

func (c Checkpoint) Text() []byte                              { return nil }
func ParseCheckpoint(text []byte) (Checkpoint, error)          { return Checkpoint{}, errStub }
func ParseSignedCheckpoint(b []byte) (Checkpoint, Note, error) { return Checkpoint{}, Note{}, errStub }
func ValidSeal(pub ed25519.PublicKey, msg, sig []byte) bool    { return false }

type Proof struct {
	Index      uint64
	Hashes     []Hash
	Checkpoint []byte
}

func ParseProof(b []byte) (Proof, error)                   { return Proof{}, errStub }
func (p Proof) Bytes() []byte                              { return nil }
func (p Proof) Verify(leaf Hash) (Checkpoint, Note, error) { return Checkpoint{}, Note{}, errStub }

type Policy struct{}

// PolicyWitness is one witness line: the name is the policy file's own.
type PolicyWitness struct {
	Name string
	Key  Vkey
	URL  string
}

// PolicyCosigner is a witness of the policy and its cosignature's time.
type PolicyCosigner struct {
	PolicyWitness
	Time time.Time
}

type PolicyResult struct {
	Log       *Vkey            // the log key that signed, nil without
	Cosigned  []PolicyCosigner // valid 04 cosignatures, in policy order
	Quorum    bool             // the quorum rule holds over Cosigned
	Ignored06 []Vkey           // 06 keys of the policy with a line here: not checked, not counted
	Bad       []Vkey           // keys of the policy with a line here that does not verify
}

// OK reports log signature and quorum, and no line of a known key that fails.
func (r PolicyResult) OK() bool { return r.Log != nil && r.Quorum && len(r.Bad) == 0 }

func ParsePolicy(b []byte) (*Policy, error)  { return nil, errStub }
func (p *Policy) Logs() []Vkey               { return nil }
func (p *Policy) Witnesses() []PolicyWitness { return nil }
func (p *Policy) Check(n Note) PolicyResult  { return PolicyResult{} }

type Section struct {
	Name string
	Data []byte
}

// ParseSections wants header without its newline.
func ParseSections(header string, b []byte) ([]Section, error) { return nil, errStub }
func FormatSections(header string, s []Section) []byte         { return nil }
