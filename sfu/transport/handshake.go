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

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// beforeHello gives a client that comes from another node the time to use the address that it has just nominated.
	beforeHello = 5 * time.Millisecond
	// flightInterval is shorter than the 1 s of RFC 6347 section 4.2.4.1, which is long for a viewer.
	flightInterval   = 100 * time.Millisecond
	handshakeTimeout = 30 * time.Second
	pipePackets      = 32
	// dataPackets is for the time in which the client's data is not read. SCTP sends again what is lost.
	dataPackets = 256
)

var (
	errFingerprint = errors.New("the client's certificate is not the one that its offer names")
	errNoProfile   = errors.New("no SRTP profile was agreed on")
)

// beginHandshake needs mu. A ClientHello before the nomination would do harm: Chromium answers it to the address of
// the dead node, and ignores its repetitions.
func (c *Conn) beginHandshake(to egress.Address) {
	lasting, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.pipe = &pipe{Buffer: packetio.NewBuffer(), conn: c}
	c.pipe.SetLimitCount(pipePackets)
	p := c.pipe
	begun := time.Now()
	c.running.Go(func() {
		c.in.wait(true)
		defer cancel()
		ctx, late := context.WithTimeout(lasting, handshakeTimeout)
		defer late()
		if !c.cfg.Fresh {
			wait := time.NewTimer(beforeHello)
			defer wait.Stop()
			select {
			case <-wait.C:
			case <-ctx.Done():
			}
		}
		var conn *dtls.Conn
		var err error
		if caught := panics.Catch(func() { conn, err = c.shakeHands(ctx, p, net.UDPAddrFromAddrPort(to.AddrPort)) }); caught != nil {
			c.transport.panics.Report(c.cfg.Log, caught, "a handshake broke the node's part of it: connection ended")
			err = caught
		}
		c.in.wait(false)
		c.mu.Lock()
		c.up, c.failed = err == nil, c.failed || err != nil
		if conn == nil {
			c.pipe = nil
		}
		c.mu.Unlock()
		c.cfg.Trace.Since("ICE", c.opened).Set("network", c.Network()).EndAt(begun)
		c.cfg.Trace.Since("DTLS", begun).End(err)
		if err != nil {
			c.cfg.Log.Debug("DTLS handshake failed", "error", err)
		} else {
			c.cfg.Log.Debug("DTLS is up", "after", time.Since(begun))
		}
		c.transport.on(c, time.Now(), (*Conn).settle)
		if conn != nil {
			c.carry(lasting, conn, p)
		}
	})
}

// carry has the handler use DTLS until the connection ends. Its end is not told to the client, which may be moving.
func (c *Conn) carry(lasting context.Context, conn *dtls.Conn, p *pipe) {
	p.SetLimitCount(dataPackets)
	end := func() {
		p.mute()
		_ = p.Close()
	}
	defer context.AfterFunc(lasting, end)()
	if caught := panics.Catch(func() { c.cfg.Data(&quietDTLS{Conn: conn, end: end}) }); caught != nil {
		c.transport.panics.Report(c.cfg.Log, caught, "data of a client broke the node's handling of it: its data channels ended")
	}
	end()
	c.mu.Lock()
	c.pipe = nil
	c.mu.Unlock()
	_ = conn.Close()
}

// quietDTLS is a connection of DTLS that ends without close_notify, which would end the client's RTCPeerConnection.
type quietDTLS struct {
	*dtls.Conn

	end func()
}

// Close is part of net.Conn.
func (c *quietDTLS) Close() error {
	c.end()
	return c.Conn.Close()
}

// shakeHands agrees on SRTP keys (RFC 5764). It returns the connection of DTLS if that has a further use.
func (c *Conn) shakeHands(ctx context.Context, p *pipe, to net.Addr) (kept *dtls.Conn, err error) {
	conn, err := dtls.ClientWithOptions(p, to,
		dtls.WithCertificates(c.certificate), dtls.WithSRTPProtectionProfiles(c.cfg.Profiles...), dtls.WithFlightInterval(flightInterval),
		dtls.WithInsecureSkipVerify(true), dtls.WithVerifyPeerCertificate(c.verify), dtls.WithLoggerFactory(pionLogs{c.cfg.Log}),
	)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	defer func() {
		if kept != nil {
			return
		}
		// Without that the handshake's end would send close_notify.
		p.mute()
		_ = conn.Close()
	}()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	profile, ok := conn.SelectedSRTPProtectionProfile()
	if !ok {
		return nil, errNoProfile
	}
	state, ok := conn.ConnectionState()
	if !ok {
		return nil, errNoProfile
	}
	keys := srtp.Config{Profile: srtp.ProtectionProfile(profile)}
	if err := keys.ExtractSessionKeysFromDTLS(&state, true); err != nil {
		return nil, fmt.Errorf("export keys: %w", err)
	}
	if err := c.out.open(keys); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.keys = keysOf(keys)
	c.mu.Unlock()
	// The first packets may need answers at once.
	if err := c.open(keys); err != nil || c.cfg.Data == nil {
		return nil, err
	}
	return conn, nil
}

// verify checks the offer's fingerprint (RFC 8122 section 5).
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

// alertRecord is the first byte of a DTLS alert (RFC 6347 section 4.1).
const alertRecord = 21

func (c *Conn) record(b []byte, now time.Time) {
	c.mu.Lock()
	p, up := c.pipe, c.up
	c.mu.Unlock()
	if p != nil {
		// Write copies the packet. What does not fit is lost.
		_, _ = p.Write(b)
	}
	if up && b[0] == alertRecord && c.keyed == nil {
		c.goodbye.Store(int64(now.Sub(c.opened)))
	}
}
