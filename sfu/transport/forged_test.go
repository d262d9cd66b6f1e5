package transport

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"encoding/asn1"
	"io"
	"math/big"
	"testing"
	"time"

	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
)

// forger signs a ServerKeyExchange without the private key. It knows only the public key of the certificate.
type forger struct{ victim *ecdsa.PublicKey }

// Public makes the DTLS server label what Sign returns as Ed25519, although the certificate's key is an ECDSA key.
func (forger) Public() crypto.PublicKey {
	return ed25519.PublicKey(make([]byte, ed25519.PublicKeySize))
}

// Sign returns an ECDSA signature of an empty digest. For a digest of zero, every verifier computes the point (r/s)Q,
// so that r = s = x(Q) is valid for any public key Q.
func (f forger) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	key, err := f.victim.Bytes()
	if err != nil {
		return nil, err
	}
	size := (f.victim.Params().BitSize + 7) / 8
	x := new(big.Int).Mod(new(big.Int).SetBytes(key[1:1+size]), f.victim.Params().N)
	return asn1.Marshal(struct{ R, S *big.Int }{x, x})
}

// TestAKeyExchangeThatNothingSignsIsRefused: the media node is the DTLS client. Whoever stands on the path has the browser's
// certificate, which is sent in clear, but not its key, and must not be able to pose as the browser with it.
func TestAKeyExchangeThatNothingSignsIsRefused(t *testing.T) {
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	victim := &certificate.PrivateKey.(*ecdsa.PrivateKey).PublicKey
	forged := forger{victim: victim}
	signature, err := forged.Sign(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !ecdsa.VerifyASN1(victim, nil, signature) {
		t.Fatal("the signature is not one of an empty digest, so the test would show nothing")
	}
	certificate.PrivateKey = forged
	transport, w := newTransport(t)
	c, _, shaken := newServer(t, transport, w, "alice", certificate)
	c.check(c.from, c.conn.Credentials(), true)
	select {
	case err = <-shaken:
		shaken <- nil
	case <-time.After(patience):
		t.Fatal("DTLS does not come to an end")
	}
	if err == nil {
		t.Error("a client without the private key has finished the handshake")
	}
	eventually(t, "the connection has failed", func() bool { return c.got.state() == Failed })
}
