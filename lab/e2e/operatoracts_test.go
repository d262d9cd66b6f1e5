package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestTheOperatorOrders clicks each button of a room on the operator's page, and sees in the room what comes of it.
func TestTheOperatorOrders(t *testing.T) {
	t.Parallel()
	needChromium(t, 1)
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 1})
	room := roomOn(t, "sfu-1", "ordered")
	call := gather(t, c, room, 2)
	call.everybodyReceives(t, time.Minute)
	guest, _, err := joinAs(t.Context(), c, room, "guest")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- ending(t.Context(), guest) }()
	op := openPage(t, "the operator", c.URL()+"operator/")
	op.opensRoom(t, room)
	person := `[...document.querySelectorAll('#sheet .person')].find((row) => row.querySelector('.person-head').textContent.includes('guest'))`
	op.sees(t, "the guest", person)

	op.orders(t, "Cap", 3)
	op.sees(t, "that all places are taken", says("3 of 3 places taken"))
	refusedAs(t, c, room, wire.CodeRoomFull)
	op.orders(t, "Cap", 0)
	op.sees(t, "no cap", "!"+says("places taken"))
	op.orders(t, "Close the door", -1)
	op.sees(t, "the closed door", button("Open the door"))
	refusedAs(t, c, room, wire.CodeRoomClosed)
	op.orders(t, "Open the door", -1)
	op.sees(t, "the open door", button("Close the door"))
	newcomer, _, err := joinAs(t.Context(), c, room, "newcomer")
	if err != nil {
		t.Fatalf("the door is open, and somebody hears %v", err)
	}
	goodbye(newcomer)

	op.mustEval(t, `(`+person+`.querySelector('button').click(), document.querySelector('#question-yes').click(), true)`, nil)
	select {
	case err := <-ended:
		if closed, ok := errors.AsType[websocket.CloseError](err); !ok || closed.Reason != string(wire.CodeKicked) {
			t.Errorf("the guest's session ended with %v, want %s", err, wire.CodeKicked)
		}
	case <-time.After(time.Minute):
		t.Error("the guest is still there")
	}
	op.sees(t, "that the guest is gone", "!"+person)

	op.orders(t, "Spread", -1)
	member := `[...document.querySelectorAll('#sheet .person')].find((row) => row.querySelector('.step') && row.textContent.includes('sfu-2'))`
	op.sees(t, "the second node of the room", member+`.textContent.includes('linked')`)
	call.everybodyReceives(t, time.Minute)
	op.mustEval(t, `(`+member+`.querySelector('button').click(), document.querySelector('#question-yes').click(), true)`, nil)
	op.sees(t, "that the room is on one node", "!"+member)

	op.orders(t, "Move", -1)
	call.leavesNode(t, "sfu-1")
	call.everybodyReceives(t, time.Minute)
	op.sees(t, "the room on the other node", `document.querySelector('#sheet .about').textContent.includes('sfu-2')`)
}

// opensRoom opens the sheet of a room.
func (p *page) opensRoom(t *testing.T, room string) {
	t.Helper()
	row := fmt.Sprintf(`[...document.querySelectorAll('#rooms-rows .row')].find((row) => row.dataset.room === %q)`, room)
	p.sees(t, "the room", row)
	p.mustEval(t, `(`+row+`.querySelector('button').click(), true)`, nil)
}

// orders clicks a button of the room's sheet and says yes to the question, with a number unless it is negative. The page then says what
// became of it.
func (p *page) orders(t *testing.T, act string, number int) {
	t.Helper()
	p.sees(t, act, button(act))
	p.mustEval(t, `(document.querySelector('#told').hidden = true, `+button(act)+`.click(), true)`, nil)
	p.sees(t, "the question", `document.querySelector('#question').open`)
	if number >= 0 {
		p.mustEval(t, fmt.Sprintf(`(document.querySelector('#question-number input').value = %d, true)`, number), nil)
	}
	p.mustEval(t, `(document.querySelector('#question-yes').click(), true)`, nil)
	p.sees(t, "that it is done", `!document.querySelector('#told').hidden && document.querySelector('#told').dataset.state === 'good'`)
}

// button is the button of a room's sheet that has a text.
func button(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll('#sheet .acts button')].find((button) => !button.hidden && button.textContent === %q)`, text)
}

// says is a condition on the facts of a room's sheet.
func says(text string) string {
	return fmt.Sprintf(`document.querySelector('#sheet .facts').textContent.includes(%q)`, text)
}

// refusedAs has a stranger try to join.
func refusedAs(t *testing.T, c *devcluster.Cluster, room string, want wire.Code) {
	t.Helper()
	socket, _, err := joinAs(t.Context(), c, room, "stranger")
	if err == nil {
		goodbye(socket)
	}
	if refused, ok := errors.AsType[*peer.RefusedError](err); !ok || refused.Code != want {
		t.Errorf("a stranger hears %v, want %s", err, want)
	}
}

// ending reads until the server closes the socket, and returns how it did.
func ending(ctx context.Context, socket *websocket.Conn) error {
	for {
		if _, _, err := socket.Read(ctx); err != nil {
			return err
		}
	}
}
