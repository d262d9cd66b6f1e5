package peer

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// server is a signaling node that says what the test has it say, and has no media.
type server struct{ sockets chan *websocket.Conn }

func newServer(t *testing.T) (*server, string) {
	t.Helper()
	s := &server{sockets: make(chan *websocket.Conn)}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{wire.Subprotocol}})
		if err != nil {
			return
		}
		socket.SetReadLimit(messageBytes)
		select {
		case s.sockets <- socket: // It lives on without this handler.
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(web.Close)
	return s, web.URL
}

// join has a peer join a server, and leave when the test ends.
func join(t *testing.T, at wire.Placement) (*server, *websocket.Conn) {
	t.Helper()
	s, address := newServer(t)
	p, err := New(Options{URL: address, ListenOnly: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	living, leave := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(living) }()
	t.Cleanup(func() {
		leave()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, s.next(t, &wire.Joined{Placement: at, Resume: "r", Peer: "p"})
}

// next is the next socket of the peer, whose first message it reads and answers.
func (s *server) next(t *testing.T, answer wire.Message) *websocket.Conn {
	t.Helper()
	select {
	case socket := <-s.sockets:
		hear(t, socket)
		say(t, socket, answer)
		return socket
	case <-time.After(hearLimit):
		t.Fatal("the peer does not come")
		return nil
	}
}

const hearLimit = 30 * time.Second

func hear(t *testing.T, socket *websocket.Conn) wire.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hearLimit)
	defer cancel()
	_, frame, err := socket.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	message, err := wire.Decode(frame)
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func hearOffer(t *testing.T, socket *websocket.Conn) *wire.Offer {
	t.Helper()
	for {
		if offer, is := hear(t, socket).(*wire.Offer); is {
			return offer
		}
	}
}

func say(t *testing.T, socket *websocket.Conn, message wire.Message) {
	t.Helper()
	frame, err := wire.Encode(message)
	if err == nil {
		err = socket.Write(t.Context(), websocket.MessageText, frame)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnOfferThatIsDueIsSaidAgain on the socket after the one that was lost, unless the room has moved on or the
// session is a new one: as web/static/holdfast/media.js does.
func TestAnOfferThatIsDueIsSaidAgain(t *testing.T) {
	at := wire.Placement{Node: "sfu-1", Epoch: 10}
	later := wire.Placement{Node: "sfu-2", Epoch: 11}
	for name, test := range map[string]struct {
		answer wire.Message
		again  bool
	}{
		"the node has the peer":                        {&wire.Resumed{Placement: at, Resume: "r", MediaAlive: true}, true},
		"the node has the peer, under a newer pin":     {&wire.Resumed{Placement: later, Resume: "r", MediaAlive: true}, true},
		"the node waits for the connection to be made": {&wire.Resumed{Placement: at, Resume: "r"}, true},
		"the room is elsewhere":                        {&wire.Resumed{Placement: later, Resume: "r"}, false},
		"the session could not be resumed: a new one":  {&wire.Joined{Placement: at, Resume: "r", Peer: "p"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, first := join(t, at)
			due := hearOffer(t, first)
			_ = first.CloseNow()
			second := s.next(t, test.answer)
			if got := hearOffer(t, second); (got.ID == due.ID) != test.again || (got.SDP == due.SDP) != test.again {
				t.Errorf("offer %s after %s, want the same: %t", got.ID, due.ID, test.again)
			}
			_ = second.CloseNow()
		})
	}
}

// TestWhoIsRejectedTriesAgainSoon, and not only when the offer would have failed by itself.
func TestWhoIsRejectedTriesAgainSoon(t *testing.T) {
	_, socket := join(t, wire.Placement{Node: "sfu-1", Epoch: 10})
	var ids []string
	began := time.Now()
	for range 3 { // Pauses of 0.5 and 1 s, against twice 4 s.
		offer := hearOffer(t, socket)
		ids = append(ids, offer.ID)
		say(t, socket, &wire.OfferRejected{ID: offer.ID, Code: wire.CodeInternal, Epoch: 10})
	}
	if took := time.Since(began); took >= 2*offerLimit || len(slices.Compact(ids)) != 3 {
		t.Errorf("offers %v in %s", ids, took)
	}
	_ = socket.CloseNow()
}
