package transport

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"fmt"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

// sealer may be used by one goroutine at a time.
type sealer interface {
	// seal writes header, payload and padding, encrypted, and returns their length.
	seal(space []byte, header *rtp.Header, payload []byte) (int, error)
}

func newSealer(keys srtp.Config, context *srtp.Context) (sealer, error) {
	switch keys.Profile {
	case srtp.ProtectionProfileAeadAes128Gcm, srtp.ProtectionProfileAeadAes256Gcm:
		return newGCM(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt)
	default:
		return &pionSealer{context: context}, nil
	}
}

// gcm is SRTP with AES-GCM (RFC 7714).
type gcm struct {
	aead    cipher.AEAD
	salt    [nonceBytes]byte
	nonce   [nonceBytes]byte
	indices map[uint32]*index
}

const (
	nonceBytes   = 12
	sealOverhead = 16
)

// Labels of session keys (RFC 3711 section 4.3.1).
const (
	labelKey  = 0
	labelSalt = 2
)

func newGCM(masterKey, masterSalt []byte) (*gcm, error) {
	key, err := derive(masterKey, masterSalt, labelKey, len(masterKey))
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use the session key: %w", err)
	}
	g := &gcm{indices: map[uint32]*index{}}
	if g.aead, err = cipher.NewGCM(block); err != nil {
		return nil, fmt.Errorf("use the session key: %w", err)
	}
	salt, err := derive(masterKey, masterSalt, labelSalt, nonceBytes)
	copy(g.salt[:], salt)
	return g, err
}

// derive makes a session key (RFC 3711 section 4.3.3).
func derive(masterKey, masterSalt []byte, label byte, bytes int) ([]byte, error) {
	block, err := aes.NewCipher(masterKey)
	if err != nil {
		return nil, fmt.Errorf("use the master key: %w", err)
	}
	const labelAt = 7
	var begin [aes.BlockSize]byte
	copy(begin[:14], masterSalt)
	begin[labelAt] ^= label
	out := make([]byte, bytes)
	cipher.NewCTR(block, begin[:]).XORKeyStream(out, out)
	return out, nil
}

func (g *gcm) seal(space []byte, header *rtp.Header, payload []byte) (int, error) {
	start, err := header.MarshalTo(space)
	if err != nil {
		return 0, fmt.Errorf("write RTP header: %w", err)
	}
	end := start + len(payload) + int(header.PaddingSize)
	if len(space) < end+sealOverhead {
		return 0, errPacketSize
	}
	if header.PaddingSize > 0 {
		payload = space[start : start+pad(space[start:], payload, header.PaddingSize)]
	}
	if err := g.address(header); err != nil {
		return 0, err
	}
	g.aead.Seal(space[start:start], g.nonce[:], payload, space[:start])
	return end + g.aead.Overhead(), nil
}

// address makes the nonce of a packet (RFC 7714 section 8.1). It refuses a number that a standby may use.
func (g *gcm) address(header *rtp.Header) error {
	i := g.indices[header.SSRC]
	if i == nil {
		i = &index{}
		g.indices[header.SSRC] = i
	}
	clear(g.nonce[:2])
	binary.BigEndian.PutUint32(g.nonce[2:], header.SSRC)
	binary.BigEndian.PutUint16(g.nonce[10:], header.SequenceNumber)
	at := i.extend(header.SequenceNumber)
	switch {
	case i.limit != 0 && at > i.limit:
		return errUnacknowledged
	case i.floor != 0 && at <= i.floor:
		return errUsedNumber
	}
	binary.BigEndian.PutUint32(g.nonce[6:], uint32(at>>16))
	subtle.XORBytes(g.nonce[:], g.nonce[:], g.salt[:])
	return nil
}

// index follows an SSRC's numbers (RFC 3711 section 3.3.1).
type index struct {
	begun   bool
	highest uint64
	// limit is the highest number that may be sealed, or 0: see Conn.Bound.
	limit uint64
	// floor is the highest number that another node may have sealed, or 0.
	floor uint64
}

// extend returns the roll-over counter and the number.
func (i *index) extend(sequence uint16) uint64 {
	if !i.begun {
		i.begun, i.highest = true, uint64(sequence)
	}
	at := i.highest + uint64(int64(int16(sequence-uint16(i.highest))))
	if at > i.highest && at-i.highest < 1<<15 {
		i.highest = at
	}
	return at
}

// pad writes the payload and its padding (RFC 3550 section 5.1).
func pad(space, payload []byte, padding uint8) int {
	n := copy(space, payload)
	clear(space[n : n+int(padding)])
	n += int(padding)
	space[n-1] = padding
	return n
}

type pionSealer struct {
	context *srtp.Context
	header  rtp.Header
}

func (p *pionSealer) seal(space []byte, header *rtp.Header, payload []byte) (int, error) {
	n, err := header.MarshalTo(space)
	if err != nil {
		return 0, fmt.Errorf("write RTP header: %w", err)
	}
	if len(space) < n+len(payload)+int(header.PaddingSize)+sealOverhead {
		return 0, errPacketSize
	}
	if header.PaddingSize > 0 {
		n += pad(space[n:], payload, header.PaddingSize)
	} else {
		n += copy(space[n:], payload)
	}
	sealed, err := p.context.EncryptRTP(space, space[:n], &p.header)
	if err != nil {
		return 0, fmt.Errorf("seal RTP: %w", err)
	}
	return len(sealed), nil
}
