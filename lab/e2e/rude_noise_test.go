package e2e

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// mediaNoise sends what reaches a media port from the internet.
func mediaNoise(ctx context.Context, a *attacker) error {
	conn, err := a.udp(ctx, devcluster.AddressMedia)
	if err != nil {
		return err
	}
	defer conn.Close()
	// A binding request (RFC 8489) with the user name "nobody:here".
	toNobody := append([]byte{0, 1, 0, 16, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 6, 0, 11}, "nobody:here\x00"...)
	random := make([]byte, 1200)
	_, _ = rand.Read(random)
	rtp := append([]byte{0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7}, random[:500]...)
	hello := append([]byte{22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60, 1}, random[:60]...)
	for i := range 5_000 {
		binary.BigEndian.PutUint16(rtp[2:], uint16(i%math.MaxUint16))
		for _, packet := range [][]byte{random, toNobody, toNobody[:len(toNobody)/2], rtp, hello} {
			if _, err := conn.Write(packet); err != nil {
				return err
			}
		}
		if i%50 == 0 {
			<-time.After(time.Millisecond) // A flood that fills the socket's buffer hurts every UDP service alike.
		}
	}
	return nil
}

// checksFromEverywhere checks its connection from more ports than any client has, with the right password. The first are
// answered.
func checksFromEverywhere(ctx context.Context, a *attacker) error {
	s, err := a.joined(ctx, a.name())
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }()
	if err := s.say(ctx, &wire.Offer{ID: "checks", SDP: sdpHead + sdpLine(0, sdpSecure()), Fresh: true}); err != nil {
		return err
	}
	answer, err := awaitMessage[*wire.Answer](ctx, s)
	if err != nil {
		return err
	}
	ours, password := sdpValue(answer.SDP, "ice-ufrag"), sdpValue(answer.SDP, "ice-pwd")
	check := func() (net.Conn, error) {
		conn, err := a.udp(ctx, devcluster.AddressMedia)
		if err != nil {
			return nil, err
		}
		message, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(ours+":abcd"),
			ice.AttrControlling(1<<63), ice.PriorityAttr(1<<30), stun.NewShortTermIntegrity(password), stun.Fingerprint)
		if err == nil {
			_, err = conn.Write(message.Raw)
		}
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
	// Side by side: who is not answered waits for the limit.
	var mu sync.Mutex
	answered := make(map[string]bool)
	err = several(100, func(int) error {
		conn, err := check()
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		if _, nobody := conn.Read(make([]byte, 1500)); nobody == nil {
			mu.Lock()
			defer mu.Unlock()
			answered[conn.LocalAddr().String()] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for range 3_000 {
		conn, err := check()
		if err != nil {
			return err
		}
		if err := conn.Close(); err != nil {
			return err
		}
	}
	if len(answered) == 0 {
		return fmt.Errorf("%w: none of the first 100 ports was answered", errAnswer)
	}
	return s.say(ctx, &wire.Leave{})
}

func controlNoise(ctx context.Context, a *attacker) error {
	for range 300 {
		conn, err := a.tcp(ctx, devcluster.AddressControl)
		if err != nil {
			return err
		}
		a.held = append(a.held, conn)
	}
	return several(100, func(i int) error {
		conn, err := a.tcp(ctx, devcluster.AddressControl)
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if i%2 == 0 {
			_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
			return nil
		}
		secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if secured.HandshakeContext(ctx) == nil {
			if _, err := secured.Read(make([]byte, 1)); err == nil {
				return fmt.Errorf("%w: the control port speaks to somebody without a key", errAnswer)
			}
		}
		return nil
	})
}

func gossipNoise(ctx context.Context, a *attacker) error {
	for kind := range a.ports {
		if !strings.HasPrefix(kind, devcluster.AddressGossip) {
			continue
		}
		noise := make([]byte, 1200)
		_, _ = rand.Read(noise)
		packets, err := a.udp(ctx, kind)
		if err != nil {
			return err
		}
		for i := range 5_000 {
			noise[0] = byte(i)
			if _, err := packets.Write(noise); err != nil {
				return errors.Join(err, packets.Close())
			}
			if i%100 == 0 {
				<-time.After(time.Millisecond)
			}
		}
		_ = packets.Close()
		err = several(30, func(int) error {
			conn, err := a.tcp(ctx, kind)
			if err != nil {
				return err
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			_, err = conn.Write([]byte{10, 0x01, 0x30, 0, 0}) // memberlist's type of an encrypted message, of 19 MB
			for sent := 0; err == nil && sent < 19<<20; sent += len(noise) {
				_, err = conn.Write(noise)
			}
			if err == nil || !errors.As(err, new(*net.OpError)) {
				return fmt.Errorf("%w: 19 MB of noise were read (%w)", errAnswer, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
