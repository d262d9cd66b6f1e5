package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

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
		{`{"type":"resume","resume":"hfr2.e30.e30","attempt":2}`, wire.CodeBadToken},
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

// The parts of an offer with slots for video.
const sdpHead = "v=0\r\no=- 42 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n"

func sdpSecure() string {
	return "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=fingerprint:sha-256 " + strings.TrimSuffix(strings.Repeat("00:", 32), ":") + "\r\na=setup:actpass\r\n"
}

func sdpLine(mid int, more string) string {
	return fmt.Sprintf("m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:%d\r\na=recvonly\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n%s", mid, more)
}

func sdpValue(sdp, name string) string {
	_, rest, _ := strings.Cut(sdp, "a="+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

func badOffers(ctx context.Context, a *attacker) error {
	s, err := a.joined(ctx, a.name())
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }()
	head, secure, line := sdpHead, sdpSecure(), sdpLine
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
