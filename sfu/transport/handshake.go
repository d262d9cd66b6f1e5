package transport

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/srtp/v3"
	"github.com/pion/transport/v4/packetio"

	"github.com/holdfast-rtc/holdfast/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// beforeHello is how long a client has, after it has nominated an address, to use it: Chromium does so in a task of its own.
	beforeHello = 5 * time.Millisecond
	// flightInterval is after how long a flight is sent again first; it doubles. DTLS's own 1 s would cost a viewer that much for one
	// lost packet (RFC 6347 section 4.2.4.1).
	flightInterval = 100 * time.Millisecond
	// handshakeTimeout is longer than a client waits before it makes a new connection.
	handshakeTimeout = 30 * time.Second
	// pipePackets bounds the records that wait for DTLS: a flight of a browser has at most a handful.
	pipePackets = 32
)

var (
	errFingerprint = errors.New("the client's certificate is not the one that its offer names")
	errNoProfile   = errors.New("no SRTP profile was agreed on")
)

// beginHandshake starts DTLS once the client has nominated an address. A ClientHello that comes sooner does harm: Chromium answers it
// to the address that it still uses, that of the node which died, ignores a repeated one, and answers again by its own clock only,
// which doubles. Call it with mu held.
func (c *Conn) beginHandshake(to egress.Address) {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	c.cancel = cancel
	c.pipe = &pipe{Buffer: packetio.NewBuffer(), conn: c}
	c.pipe.SetLimitCount(pipePackets)
	p := c.pipe
	begun := time.Now()
	c.running.Go(func() {
		c.in.wait(true)
		defer cancel()
		wait := time.NewTimer(beforeHello)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
		var err error
		if caught := panics.Catch(func() { err = c.shakeHands(ctx, p, net.UDPAddrFromAddrPort(to.AddrPort)) }); caught != nil {
			c.transport.panics.Report(c.cfg.Log, caught, "a handshake broke the node's part of it: connection ended")
			err = caught
		}
		c.in.wait(false)
		c.mu.Lock()
		c.pipe, c.up, c.failed = nil, err == nil, c.failed || err != nil
		c.mu.Unlock()
		if err != nil {
			c.cfg.Log.Debug("DTLS handshake failed", "error", err)
		} else {
			c.cfg.Log.Debug("DTLS is up", "after", time.Since(begun))
		}
		c.transport.on(c, time.Now(), (*Conn).settle)
	})
}

// shakeHands agrees on the keys of SRTP (RFC 5764) and leaves nothing running. As the client of DTLS the node has the last flight of
// the other side when it is done, so that nothing has to be sent again later.
func (c *Conn) shakeHands(ctx context.Context, p *pipe, to net.Addr) error {
	conn, err := dtls.ClientWithOptions(p, to,
		dtls.WithCertificates(c.certificate), dtls.WithSRTPProtectionProfiles(c.cfg.Profiles...), dtls.WithFlightInterval(flightInterval),
		dtls.WithInsecureSkipVerify(true), dtls.WithVerifyPeerCertificate(c.verify), dtls.WithLoggerFactory(pionLogs{c.cfg.Log}),
	)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() {
		p.mute() // Or it would say close_notify.
		_ = conn.Close()
	}()
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	profile, ok := conn.SelectedSRTPProtectionProfile()
	if !ok {
		return errNoProfile
	}
	state, ok := conn.ConnectionState()
	if !ok {
		return errNoProfile
	}
	keys := srtp.Config{Profile: srtp.ProtectionProfile(profile)}
	if err := keys.ExtractSessionKeysFromDTLS(&state, true); err != nil {
		return fmt.Errorf("export keys: %w", err)
	}
	if err := c.out.open(keys); err != nil {
		return err
	}
	return c.open(keys) // What was kept may have to be answered.
}

// verify compares the client's certificate with the fingerprint of its offer (RFC 8122 section 5).
func (c *Conn) verify(certificates [][]byte, _ [][]*x509.Certificate) error {
	if len(certificates) == 0 {
		return errFingerprint
	}
	var got []byte
	switch c.cfg.Fingerprint.Algorithm {
	case "sha-256":
		sum := sha256.Sum256(certificates[0])
		got = sum[:]
	case "sha-384":
		sum := sha512.Sum384(certificates[0])
		got = sum[:]
	case "sha-512":
		sum := sha512.Sum512(certificates[0])
		got = sum[:]
	}
	if got == nil || !bytes.Equal(got, c.cfg.Fingerprint.Value) {
		return errFingerprint
	}
	return nil
}

// alertRecord is the first byte of a DTLS record with an alert (RFC 6347 section 4.1).
const alertRecord = 21

// record takes in a datagram of DTLS. After the handshake only an alert means anything: the client may be closing.
func (c *Conn) record(b []byte, now time.Time) {
	c.mu.Lock()
	p, up := c.pipe, c.up
	c.mu.Unlock()
	switch {
	case p != nil:
		_, _ = p.Write(b) // It copies. What does not fit is lost like a packet.
	case up && b[0] == alertRecord:
		c.goodbye.Store(now.UnixNano())
	}
}
