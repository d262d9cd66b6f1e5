package signaling

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// minefield is a node with a call in it, and a signaling node that breaks at certain messages.
func minefield(t *testing.T) (r *rig, n *node, e *signalingNode, bob *client) {
	t.Helper()
	r = newRig(t)
	r.log = testkit.Landmine(r.log, "client migrated", "node asks for a new offer")
	n = r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	r.placer.set("placed-attic", n.pin(firstEpoch))
	r.prepare = func(s *Server) {
		s.decode = func(frame []byte) (wire.Message, error) {
			if bytes.Contains(frame, []byte("of a test")) {
				panic("of a test")
			}
			return wire.Decode(frame)
		}
	}
	e = r.signalingNode(nil)
	bob, _ = e.join("lobby", "Bob")
	return r, n, e, bob
}

// goesOn fails unless a client's socket still answers.
func (c *client) goesOn() {
	c.t.Helper()
	c.say(&wire.Ping{T: 42})
	for {
		if pong, ok := c.next().(*wire.Pong); ok && pong.T == 42 {
			return
		}
	}
}

// broken fails unless the socket is closed for an internal error, and reports whether the client was told.
func (c *client) broken() (told bool) {
	c.t.Helper()
	code, heard := c.closed()
	if code != websocket.StatusInternalError {
		c.t.Errorf("closed with %v, want %v", code, websocket.StatusInternalError)
	}
	for _, m := range heard {
		fault, ok := m.(*wire.Error)
		told = told || ok && fault.Code == wire.CodeInternal
	}
	return told
}

// TestAMessageThatBreaksItsHandlingCostsItsSession: the client is told and may come back once; then it is refused, whatever the node.
func TestAMessageThatBreaksItsHandlingCostsItsSession(t *testing.T) {
	_, _, e, bob := minefield(t)
	ada, joined := e.join("lobby", "Ada")
	ada.say(&wire.Migrated{Epoch: firstEpoch, How: "restart"})
	if !ada.broken() {
		t.Error("the client is told nothing")
	}
	ada = e.dial()
	ada.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	hear[*wire.Resumed](ada)
	ada.write(`{"type":"say","text":"of a test"}`)
	ada.broken()
	for name, first := range map[string]wire.Message{
		"resume": &wire.Resume{Resume: joined.Resume, Attempt: 3}, "join": &wire.Join{Token: e.rig.token("lobby", "Ada")},
	} {
		ada = e.dial()
		ada.say(first)
		if fault := hear[*wire.Error](ada); fault.Code != wire.CodeNotAllowed || fault.Retryable {
			t.Errorf("a third %s is answered with %+v", name, fault)
		}
	}
	bob.goesOn()
	if n := e.panics.Count(); n != 2 {
		t.Errorf("%d panics are counted, want 2", n)
	}
}

// TestAStrangersMessageThatBreaksItsDecodingCostsItsSocket: without a token there is nobody to remember.
func TestAStrangersMessageThatBreaksItsDecodingCostsItsSocket(t *testing.T) {
	_, _, e, bob := minefield(t)
	for range 3 {
		stranger := e.dial()
		stranger.write(`{"type":"join","token":"of a test"}`)
		stranger.broken()
	}
	bob.goesOn()
	e.join("lobby", "Ada")
}

// TestAnEventThatBreaksItsHandlingIsLeftOut: it may come of another client's input.
func TestAnEventThatBreaksItsHandlingIsLeftOut(t *testing.T) {
	_, n, e, bob := minefield(t)
	n.say("Bob", n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Reoffer{Reoffer: &control.Reoffer{Reason: "silent"}}})
	testkit.Eventually(t, "the panic is counted", func() bool { return e.panics.Count() == 1 })
	bob.goesOn()
}

// TestPlacementThatBreaksCostsItsJoin: it runs in a goroutine that several joins share.
func TestPlacementThatBreaksCostsItsJoin(t *testing.T) {
	r, _, e, bob := minefield(t)
	r.placer.bury("attic")
	ada := e.dial()
	ada.say(&wire.Join{Token: r.token("attic", "Ada")})
	if fault := hear[*wire.Error](ada); fault.Code != wire.CodeInternal {
		t.Errorf("the join is answered with %+v", fault)
	}
	bob.goesOn()
}

// TestWorkBesideASessionThatBreaksCostsTheSession: a resume is judged beside its loop.
func TestWorkBesideASessionThatBreaksCostsTheSession(t *testing.T) {
	r, _, e, bob := minefield(t)
	ada, joined := e.join("placed-attic", "Ada")
	_ = ada.conn.CloseNow()
	r.placer.bury("placed-attic")
	ada = e.dial()
	ada.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	ada.broken()
	bob.goesOn()
}

// TestARequestThatBreaksItsHandlingIsAnswered, and an operator can see that there was one.
func TestARequestThatBreaksItsHandlingIsAnswered(t *testing.T) {
	r, _, e, bob := minefield(t)
	r.placer.bury("attic")
	token, err := r.keys.Mint(apiKey, access.Operator("ops"), generous)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string) (int, []byte) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.addr+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var body bytes.Buffer
		if _, err := body.ReadFrom(response.Body); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, body.Bytes()
	}
	if status, body := ask("/api/v1/rooms/attic"); status != http.StatusInternalServerError || !bytes.Contains(body, []byte(wire.CodeInternal)) {
		t.Errorf("answered with %d and %s", status, body)
	}
	var told rest.ProcessAnswer
	if status, body := ask("/api/v1/process"); status != http.StatusOK || json.Unmarshal(body, &told) != nil || told.Panics != 1 {
		t.Errorf("the operator is told %d: %s", status, body)
	}
	bob.goesOn()
}

// TestAMediaNodesRefusalOfWhoBrokeItIsFinal: the session ends with a sentence.
func TestAMediaNodesRefusalOfWhoBrokeItIsFinal(t *testing.T) {
	_, n, e, bob := minefield(t)
	ada, _ := e.join("lobby", "Ada")
	n.set(func() {
		n.refuse = func(a *control.Attach) *control.Refused {
			if a.GetPeer().GetName() != "Ada" {
				return nil
			}
			return &control.Refused{Code: control.Refusal_REFUSAL_BROKE, Message: "inner words"}
		}
	})
	n.breakLinks()
	for {
		if bye, ok := ada.next().(*wire.Bye); ok {
			if bye.Code != wire.CodeNotAllowed || bye.Message != reply.Of(sfulink.ErrStruck).Message {
				t.Errorf("the client is told %+v", bye)
			}
			break
		}
	}
	bob.goesOn()
}
