package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// endlessFrames sends empty frames that never end a message, and pings. How fast they are read is signaling's own test.
func endlessFrames(ctx context.Context, a *attacker) error {
	empty, ping := []byte{0x00, 0x80, 0, 0, 0, 0}, []byte{0x89, 0x80, 0, 0, 0, 0}
	return several(6, func(i int) error {
		conn, err := a.upgraded(ctx, devcluster.AddressHTTP)
		if err != nil {
			return err
		}
		defer conn.Close()
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		frames := append([]byte{0x01, 0x80, 0, 0, 0, 0}, bytes.Repeat(empty, 10_000)...)
		if i%2 == 0 {
			frames = bytes.Repeat(ping, 10_000)
		}
		_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
		for {
			if _, err := conn.Write(frames); err != nil {
				return nil //nolint:nilerr // It was held back, or cut off: both are right.
			}
		}
	})
}

// neverRead holds sockets in the room that are never read again, until the end of the round.
func neverRead(ctx context.Context, a *attacker) error {
	for range 10 {
		s, err := a.joined(ctx, a.name())
		if err != nil {
			return err
		}
		a.held = append(a.held, closerFunc(s.CloseNow))
		for range 100 {
			if err := s.say(ctx, &wire.Ping{T: 1}); err != nil {
				return err
			}
		}
	}
	return nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// idleSockets opens more sockets behind the balancer than may wait of one address, and holds them.
func idleSockets(ctx context.Context, a *attacker) error {
	var first net.Conn
	for i := range 1500 {
		conn, err := a.upgraded(ctx, portFront)
		if err != nil {
			return err
		}
		a.held = append(a.held, conn)
		if i == 0 {
			_ = conn.SetReadDeadline(time.Now().Add(attackLimit))
			first = conn
		}
	}
	// Each may wait 10 s. This one had to go long before.
	began := time.Now()
	said, err := io.ReadAll(first)
	if err != nil || time.Since(began) > 5*time.Second || !bytes.Contains(said, []byte(wire.CodeTooManySockets)) {
		return fmt.Errorf("%w: the first of a crowd was told %q (%w) after %v", errAnswer, said, err, time.Since(began))
	}
	return nil
}

func badRequests(ctx context.Context, a *attacker) error {
	for _, row := range []struct {
		path, bearer string
		want         int
	}{
		{"/api/v1/nodes", "", http.StatusUnauthorized},
		{"/api/v1/nodes", "junk", http.StatusUnauthorized},
		{"/api/v1/rooms", a.token("eve", time.Hour, nil), http.StatusForbidden},
		{"/api/v1/dev/token?room=" + strings.Repeat("x", 129), "", http.StatusBadRequest},
		{"/api/v1/dev/token?room=%00", "", http.StatusBadRequest},
		{"/api/v1/../../../etc/passwd", "", http.StatusNotFound},
		{"/" + strings.Repeat("x", 40_000), "", http.StatusRequestHeaderFieldsTooLarge},
		{"/ws", "", http.StatusBadRequest},
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.ports[devcluster.AddressHTTP]+row.path, http.NoBody)
		if err != nil {
			return err
		}
		if row.bearer != "" {
			request.Header.Set("Authorization", "Bearer "+row.bearer)
		}
		response, err := a.perhaps.Do(request)
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		if response.StatusCode != row.want {
			return fmt.Errorf("%w: %.60s gives %d, want %d", errAnswer, row.path, response.StatusCode, row.want)
		}
	}
	return nil
}
