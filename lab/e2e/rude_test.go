package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// attack is one row of the table of what anybody may send.
type attack struct {
	name string
	do   func(ctx context.Context, a *attacker) error
}

// attacks lists them; docs/PROTOCOL.md has the limits that they meet.
func attacks() []attack {
	return []attack{
		{"bad tokens and rooms", badEntries},
		{"messages that are none", badMessages},
		{"offers that are none", badOffers},
		{"a message of 1 MB", tooLong},
		{"20,000 messages at once", messageFlood},
		{"frames that never become messages", endlessFrames},
		{"clients that never read", neverRead},
		{"somebody who comes and goes", comeAndGo},
		{"sockets that never say join", crowdAt(devcluster.AddressHTTP)},
		{"the same behind the balancer", crowdAt(portFront)},
		{"half requests", slowRequests},
		{"nonsense on the REST API", badRequests},
		{"noise on the media port", mediaNoise},
		{"noise on the control port", controlNoise},
		{"noise on the gossip ports", gossipNoise},
	}
}

// TestNothingThatAnybodySendsDisturbsACall runs every attack, twice, against the very
// nodes that hold a call of two. The people in it get no new offer and lose no
// packet at the node, others can join all the time, and the second round takes no
// memory and leaves no goroutine that the first had not.
func TestNothingThatAnybodySendsDisturbsACall(t *testing.T) {
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	call := gather(t, c, "healthy", 2)
	call.everybodyReceives(t, 30*time.Second)
	a := newAttacker(t, c, call.room, "signaling-1", "sfu-1", "front")
	before := call.unharmed(t, c)
	idle := processOf(t, c)
	var settled, afterwards map[string]float64
	for round := range 2 {
		for _, row := range attacks() {
			t.Run(fmt.Sprintf("round %d: %s", round+1, row.name), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), attackLimit)
				defer cancel()
				if err := row.do(ctx, a); err != nil {
					t.Error(err)
				}
				newcomer(t, c, call.room)
				call.everybodyReceives(t, 10*time.Second)
				if after := call.unharmed(t, c); after != before {
					t.Errorf("the call was %+v and is %+v", before, after)
				}
			})
		}
		a.release()
		// The places of those who left without a word are kept for the grace time.
		eventually(t, time.Minute, "the storm is over", func() error { return stormOver(t, c, call, idle) })
		settled, afterwards = afterwards, memoryOf(t, c, "signaling-1", "sfu-1")
	}
	for name, most := range settled {
		now, limit := 0.0, most*1.1+8
		// The runtime gives memory back in the background, within a minute or so.
		eventually(t, 2*time.Minute, name+" needs no more memory than after the first round", func() error {
			if now = memoryOf(t, c, name)[name]; now > limit {
				return fmt.Errorf("%.1f MiB, %.1f after the first round", now, most)
			}
			return nil
		})
		t.Logf("%s: %.1f MiB after the first round; after the second %.1f, and %.1f at rest", name, most, afterwards[name], now)
	}
	for i, p := range call.peers {
		for id, s := range p.Stats().Streams {
			if s.LongestGap > maxUndisturbedGap {
				t.Errorf("person-%d: %v without a packet of %v", i, s.LongestGap, id)
			}
		}
	}
}

// health is what an attack must not change of a call.
type health struct {
	Offers, Dropped               uint64
	Connections, Restarts, Losses int
}

// unharmed asks the SFU and the people themselves.
func (g *people) unharmed(t *testing.T, c *devcluster.Cluster) health {
	t.Helper()
	held := heldOnce(t, c, g.room)
	h := health{Dropped: held.PacketsDropped}
	for _, p := range g.peers {
		s := p.Stats()
		h.Connections, h.Restarts, h.Losses = h.Connections+s.Connections, h.Restarts+len(s.Restarts), h.Losses+s.SocketsLost
		for _, entry := range held.Peers {
			if entry.Peer == string(s.Peer) {
				h.Offers += entry.Offers
			}
		}
	}
	return h
}

// newcomer joins through the front, as anybody would, and leaves.
func newcomer(t *testing.T, c *devcluster.Cluster, room string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	token, err := c.Token(room, fmt.Sprintf("newcomer-%d", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	socket, _, err := websocket.Dial(ctx, strings.Replace(c.URL(), "http", "ws", 1)+"ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		t.Errorf("nobody can join: %v", err)
		return
	}
	defer func() { _ = socket.CloseNow() }()
	s := &attackSocket{socket}
	if err := s.say(ctx, &wire.Join{Token: token}); err != nil {
		t.Errorf("nobody can join: %v", err)
		return
	}
	if _, err := awaitMessage[*wire.Joined](ctx, s); err != nil {
		t.Errorf("nobody can join: %v", err)
		return
	}
	t.Logf("a newcomer joined in %v", time.Since(began).Round(time.Millisecond))
	if err := s.say(ctx, &wire.Leave{}); err != nil {
		t.Error(err)
	}
}

// process is GET /api/v1/process.
type process struct {
	Goroutines int   `json:"goroutines"`
	Sockets    int64 `json:"sockets"`
	Waiting    int   `json:"waiting"`
}

func processOf(t *testing.T, c *devcluster.Cluster) process {
	t.Helper()
	var p process
	if err := c.Admin(t.Context(), "process", &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// stormOver says whether only the call is left, on the edge and on the media node.
func stormOver(t *testing.T, c *devcluster.Cluster, call *people, idle process) error {
	t.Helper()
	all, err := askHoldings(t.Context(), c)
	if err != nil {
		return err
	}
	if len(all) != 1 || len(all[call.room]) != 1 || len(all[call.room][0].Peers) != len(call.peers) {
		return fmt.Errorf("the SFU holds %d rooms, and %+v", len(all), all[call.room])
	}
	if now := processOf(t, c); now.Sockets > idle.Sockets || now.Goroutines > idle.Goroutines+5 || now.Waiting > idle.Waiting+1 {
		return fmt.Errorf("the edge has %+v, before it had %+v", now, idle)
	}
	return nil
}

// memoryOf reads the resident memory of nodes, in MiB.
func memoryOf(t *testing.T, c *devcluster.Cluster, names ...string) map[string]float64 {
	t.Helper()
	found := make(map[string]float64)
	for _, name := range names {
		pid, err := c.Pid(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			t.Fatal(err)
		}
		pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		found[name] = pages * float64(os.Getpagesize()) / (1 << 20)
	}
	return found
}

func badEntries(ctx context.Context, a *attacker) error {
	anywhere := func(g *access.Grant) { g.Room = "" }
	join := func(token, room string) string {
		text, _ := json.Marshal(map[string]string{"type": "join", "token": token, "room": room})
		return string(text)
	}
	forged, _ := access.Mint(a.access.Key, strings.Repeat("x", 32), access.Everything("eve", "healthy"), time.Hour)
	var faults []error
	for _, row := range []struct {
		first string
		want  wire.Code
	}{
		{join(a.token("eve", -time.Hour, nil), ""), wire.CodeTokenExpired},
		{join(forged, ""), wire.CodeBadToken},
		{join("", ""), wire.CodeBadToken},
		{`{"type":"join"}`, wire.CodeBadToken},
		{join(strings.Repeat("x", 30_000), ""), wire.CodeBadToken},
		{join(a.token("eve", time.Hour, nil), "attic"), wire.CodeNotAllowed},
		{join(a.token("eve", time.Hour, anywhere), ""), wire.CodeBadRoom},
		{join(a.token("eve", time.Hour, anywhere), strings.Repeat("x", 129)), wire.CodeBadRoom},
		{join(a.token("eve", time.Hour, anywhere), "a\u202eb"), wire.CodeBadRoom},
		{join(a.token("eve", time.Hour, anywhere), "a\nb"), wire.CodeBadRoom},
		{`{"type":"resume","resume":"hfr1.e30.e30","attempt":2}`, wire.CodeBadToken},
		{`{"type":"offer","id":"1","sdp":"v=0","fresh":true,"senders":[]}`, wire.CodeBadMessage},
		{`{"type":"join"`, wire.CodeBadMessage},
	} {
		faults = append(faults, a.refused(ctx, row.first, row.want))
	}
	// Braces are good names: the store's keys escape them.
	s, err := a.socket(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }()
	if err := s.say(ctx, &wire.Join{Token: a.token(a.name(), time.Hour, anywhere), Room: "{}{{room}}}"}); err != nil {
		return err
	}
	_, err = awaitMessage[*wire.Joined](ctx, s)
	return errors.Join(append(faults, err, s.say(ctx, &wire.Leave{}))...)
}

func badMessages(ctx context.Context, a *attacker) error {
	s, err := a.joined(ctx, a.name())
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }()
	many := strings.TrimSuffix(strings.Repeat(`{"mid":"0","source":"camera"},`, 5_000), ",")
	for frame, want := range map[string]wire.Code{
		`{"type":"mute","sou`: wire.CodeBadMessage,
		`{"type":"dance"}`:    wire.CodeUnknownType,
		`{"type":"view","wants":[{"peer":"p","source":"camera","width":4294967295,"height":1}]}`: wire.CodeBadMessage,
		`{"type":"offer","id":"1","sdp":"v=0","fresh":true,"senders":[` + many + `]}`:            wire.CodeBadMessage,
		`{"type":"view","wants":[` + strings.ReplaceAll(many, "mid", "peer") + `]}`:              wire.CodeBadMessage,
	} {
		if err := s.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			return err
		}
		if fault, err := awaitMessage[*wire.Error](ctx, s); err != nil || fault.Code != want {
			return fmt.Errorf("%w to %.60s: %+v, want %s", errors.Join(errAnswer, err), frame, fault, want)
		}
	}
	for range 40 { // More than anybody may send of it.
		if s.Write(ctx, websocket.MessageBinary, []byte{0, 1, 2}) != nil {
			break
		}
	}
	return s.endsWith(ctx, websocket.StatusPolicyViolation)
}

func badOffers(ctx context.Context, a *attacker) error {
	s, err := a.joined(ctx, a.name())
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }()
	head := "v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
	secure := "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=fingerprint:sha-256 " + strings.TrimSuffix(strings.Repeat("00:", 32), ":") + "\r\na=setup:actpass\r\n"
	line := func(mid int, more string) string {
		return fmt.Sprintf("m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:%d\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n%s", mid, more)
	}
	var lines strings.Builder
	for mid := range 200 {
		lines.WriteString(line(mid, secure))
	}
	for name, sdp := range map[string]string{
		"not SDP": "hello", "no m-lines": head, "200 m-lines": head + lines.String(),
		"no ICE and no DTLS": head + line(0, ""),
		"no fingerprint":     head + line(0, "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\n"),
		"data only":          head + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sctp-port:5000\r\n" + secure,
	} {
		if err := s.say(ctx, &wire.Offer{ID: name, SDP: sdp, Fresh: true}); err != nil {
			return err
		}
		rejected, err := awaitMessage[*wire.OfferRejected](ctx, s)
		if err != nil || rejected.ID != name || rejected.Code != wire.CodeBadOffer || !strings.HasSuffix(rejected.Message, ".") {
			return fmt.Errorf("%w to an offer with %s: %+v", errors.Join(errAnswer, err), name, rejected)
		}
	}
	// A good one, again and again: each would be a new connection.
	for i := range 30 {
		if err := s.say(ctx, &wire.Offer{ID: strconv.Itoa(i), SDP: head + line(0, secure), Fresh: true}); err != nil {
			return err
		}
	}
	for {
		rejected, err := awaitMessage[*wire.OfferRejected](ctx, s)
		if err != nil || rejected.Code == wire.CodeTooManyMessages {
			return err
		}
	}
}

func tooLong(ctx context.Context, a *attacker) error {
	s, err := a.joined(ctx, a.name())
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }()
	long := []byte(`{"type":"offer","id":"1","fresh":true,"senders":[],"sdp":"` + strings.Repeat("x", 1<<20) + `"}`)
	_ = s.Write(ctx, websocket.MessageText, long) // It is cut off before its end.
	return s.endsWith(ctx, websocket.StatusMessageTooBig)
}

func messageFlood(ctx context.Context, a *attacker) error {
	s, err := a.joined(ctx, a.name())
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }()
	go func() {
		for i := range 20_000 {
			muted := []byte(fmt.Sprintf(`{"type":"mute","source":"camera","muted":%t}`, i%2 == 0))
			if s.Write(ctx, websocket.MessageText, muted) != nil {
				return
			}
		}
	}()
	return s.endsWith(ctx, websocket.StatusPolicyViolation)
}

// endlessFrames sends frames without bytes that never end a message, and pings. How fast
// they are read is signaling's own test: the kernel's buffers hide it here.
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

// Close is part of io.Closer.
func (f closerFunc) Close() error { return f() }

// comeAndGo joins and leaves, and joins and goes without a word, as fast as it can under one name.
func comeAndGo(ctx context.Context, a *attacker) error {
	name, heldBack := a.name(), 0
	for i := range 100 {
		s, err := a.joined(ctx, name)
		if errors.Is(err, errAnswer) && strings.Contains(err.Error(), string(wire.CodeTooManySockets)) {
			heldBack++
			continue
		}
		if err != nil {
			return err
		}
		if i%2 == 0 {
			_ = s.say(ctx, &wire.Leave{})
		}
		_ = s.CloseNow()
	}
	if heldBack < 50 {
		return fmt.Errorf("%w: of 100 joins only %d were held back", errAnswer, heldBack)
	}
	return nil
}

// crowdAt opens more sockets at a port than may wait of one address, and holds them.
func crowdAt(kind string) func(context.Context, *attacker) error {
	return func(ctx context.Context, a *attacker) error {
		var first net.Conn
		for i := range 1500 {
			conn, err := a.upgraded(ctx, kind)
			if err != nil {
				return err
			}
			a.held = append(a.held, conn)
			if i == 0 {
				_ = conn.SetReadDeadline(time.Now().Add(attackLimit))
				first = conn
			}
		}
		// 10 s is what each may wait. This one had to go long before, and was told why.
		began := time.Now()
		said, err := io.ReadAll(first)
		if err != nil || time.Since(began) > 5*time.Second || !bytes.Contains(said, []byte(wire.CodeTooManySockets)) {
			return fmt.Errorf("%w: the first of a crowd was told %q (%w) after %v", errAnswer, said, err, time.Since(began))
		}
		return nil
	}
}

// slowRequests sends the beginning of requests; the node must not wait for the rest for long.
func slowRequests(ctx context.Context, a *attacker) error {
	return several(100, func(int) error {
		conn, err := a.tcp(ctx, devcluster.AddressHTTP)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "); err != nil {
			return err
		}
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			return fmt.Errorf("%w: the node still waits for half a request", errAnswer)
		}
		return nil
	})
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

// mediaNoise sends what the media port gets from the internet: nothing of it is for anybody.
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
