package peer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/srtp/v3"
	"github.com/pion/transport/v4/packetio"
)

const (
	handshakeRetry = 100 * time.Millisecond
	handshakeLimit = 30 * time.Second
	pipePackets    = 32
)

var (
	errFingerprint = errors.New("the node's certificate is not the one that its answer names")
	errNoProfile   = errors.New("no SRTP profile was agreed on")
)

// The node is the DTLS client (RFC 5763 section 5). GCM costs a sixth of the HMAC profile.
func (c *connection) listen() error {
	var err error
	c.dtls, err = dtls.ServerWithOptions(c.pipe, &net.UDPAddr{},
		dtls.WithCertificates(c.stack.certificate), dtls.WithFlightInterval(handshakeRetry),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80), dtls.WithClientAuth(dtls.RequireAnyClientCert),
		dtls.WithInsecureSkipVerify(true), dtls.WithVerifyPeerCertificate(c.verify), dtls.WithInsecureSkipVerifyHello(true),
	)
	if err != nil {
		return fmt.Errorf("make a DTLS server: %w", err)
	}
	return nil
}

// RFC 8122 section 5.
func (c *connection) verify(certificates [][]byte, _ [][]*x509.Certificate) error {
	if len(certificates) == 0 {
		return errFingerprint
	}
	if hash := sha256.Sum256(certificates[0]); !bytes.Equal(hash[:], c.remote.fingerprint) {
		return errFingerprint
	}
	return nil
}

// shakeHands agrees on the SRTP keys (RFC 5764). DTLS stays open: its last flight may be lost.
func (c *connection) shakeHands(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	if err := c.openKeys(ctx); err != nil {
		c.state.Store(failed)
		return
	}
	c.state.Store(connected)
	c.reached(StepDTLS, 0)
}

func (c *connection) openKeys(ctx context.Context) error {
	if err := c.dtls.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("shake hands: %w", err)
	}
	profile, ok := c.dtls.SelectedSRTPProtectionProfile()
	state, known := c.dtls.ConnectionState()
	if !ok || !known {
		return errNoProfile
	}
	keys := srtp.Config{Profile: srtp.ProtectionProfile(profile)}
	if err := keys.ExtractSessionKeysFromDTLS(&state, false); err != nil {
		return fmt.Errorf("export keys: %w", err)
	}
	in, err := srtp.CreateContext(keys.Keys.RemoteMasterKey, keys.Keys.RemoteMasterSalt, keys.Profile)
	if err != nil {
		return fmt.Errorf("open what decrypts: %w", err)
	}
	out, err := srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, keys.Profile)
	if err != nil {
		return fmt.Errorf("open what encrypts: %w", err)
	}
	c.out.open(out)
	for _, s := range c.sends() {
		s.bind()
	}
	c.keys.Store(in)
	return nil
}

type pipe struct {
	*packetio.Buffer

	out *outbound
}

func newPipe(out *outbound) *pipe {
	p := &pipe{Buffer: packetio.NewBuffer(), out: out}
	p.SetLimitCount(pipePackets)
	return p
}

// ReadFrom implements net.PacketConn.
func (p *pipe) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := p.Read(b)
	return n, &net.UDPAddr{}, err
}

// WriteTo implements net.PacketConn.
func (p *pipe) WriteTo(b []byte, _ net.Addr) (int, error) {
	if to := p.out.to.Load(); to != nil {
		_, _ = p.out.socket.WriteToUDPAddrPort(b, *to)
	}
	return len(b), nil
}

// LocalAddr implements net.PacketConn.
func (p *pipe) LocalAddr() net.Addr { return &net.UDPAddr{} }

// SetDeadline sets the read deadline: writes do not wait.
func (p *pipe) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// SetWriteDeadline does nothing.
func (p *pipe) SetWriteDeadline(time.Time) error { return nil }
