package signaling

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// moderator joins as who runs the room.
func (e *signalingNode) moderator(who string, limit int) *client {
	e.rig.t.Helper()
	grant := access.Everything(who, "lobby")
	grant.RoomAdmin, grant.MaxParticipants = true, limit
	c := e.dial()
	c.say(&wire.Join{Token: e.rig.mint(grant, time.Hour), Wait: true})
	hear[*wire.Joined](c)
	return c
}

// door hears the next word of a door.
func (c *client) door() *wire.Door {
	c.t.Helper()
	for {
		if d, ok := c.next().(*wire.Door); ok {
			return d
		}
	}
}

// A moderator closes the room, sees who waits, admits the last, turns one away, raises the cap, and opens the room.
func TestModeratorAtTheDoor(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	mod := e.moderator("mod", 2)
	r.show("mod")
	closed, open := true, false
	mod.say(&wire.SetDoor{Closed: &closed})
	if got := mod.door(); !got.Closed || got.Inside != 1 || *got.Cap != 2 {
		t.Errorf("the door is %+v", got)
	}
	waiting := map[string]*client{}
	for i, who := range []string{"ann", "bob", "cy"} {
		waiting[who] = e.asksAs(who, strings.ToUpper(who), 2, true)
		if got := hear[*wire.Waiting](waiting[who]); got.Reason != "closed" || got.Position != i+1 {
			t.Errorf("%s waits %+v", who, got)
		}
	}
	mod.say(&wire.SetDoor{})
	if got := mod.door(); got.Length != 3 || got.Line[2].Identity != "cy" || got.Line[2].Name != "CY (self-chosen)" || got.Line[2].Since == 0 {
		t.Errorf("the line is %+v", got)
	}
	mod.say(&wire.LetIn{Identity: "cy"})
	mod.door()
	hear[*wire.Joined](waiting["cy"])
	r.show("mod", "cy")
	mod.say(&wire.TurnAway{Identity: "ann"})
	mod.door()
	if got := hear[*wire.Bye](waiting["ann"]); got.Code != wire.CodeTurnedAway {
		t.Errorf("ann hears %+v", got)
	}
	limit := 3
	mod.say(&wire.SetDoor{Closed: &open, Cap: &limit})
	mod.door()
	for {
		if _, joined := waiting["bob"].next().(*wire.Joined); joined {
			break
		}
	}
	mod.say(&wire.LetIn{Identity: "nobody"})
	for {
		if fault, ok := mod.next().(*wire.Error); ok {
			if fault.Code != wire.CodeBadMessage || !strings.Contains(fault.Message, "does not wait") {
				t.Errorf("nobody is admitted: %+v", fault)
			}
			break
		}
	}
	other := e.asks("cy", 3, true)
	hear[*wire.Joined](other)
	other.say(&wire.SetDoor{Cap: &limit})
	if got := hear[*wire.Error](other); got.Code != wire.CodeNotAllowed {
		t.Errorf("who does not run the room gets %+v", got)
	}
}

// slowDoors answers orders when it is released.
type slowDoors struct {
	doors
	release chan struct{}
}

func (d *slowDoors) Door(ctx context.Context, room ring.RoomID, o waitlist.Order) (waitlist.Door, error) {
	select {
	case <-d.release:
		return d.doors.Door(ctx, room, o)
	case <-ctx.Done():
		return waitlist.Door{}, ctx.Err()
	}
}

// A look at the door through a slow store holds nothing else up.
func TestLookHoldsNothingUp(t *testing.T) {
	r := newCapped(t)
	mod := r.signalingNode(nil).moderator("mod", 2)
	slow := &slowDoors{doors: r.placer.behind(), release: make(chan struct{})}
	r.placer.mu.Lock()
	r.placer.doors = slow
	r.placer.mu.Unlock()
	mod.say(&wire.SetDoor{})
	mod.say(&wire.Ping{T: 1})
	for pong := false; !pong; {
		switch m := mod.next().(type) {
		case *wire.Pong:
			pong = true
		case *wire.Error, *wire.Door:
			t.Fatalf("%+v came before the pong", m)
		}
	}
	close(slow.release)
	if got := mod.door(); *got.Cap != 2 {
		t.Errorf("the door is %+v", got)
	}
}

func (e *signalingNode) rest(method, path, token, body string) (int, string) {
	e.rig.t.Helper()
	request, err := http.NewRequestWithContext(e.rig.t.Context(), method, "http://"+e.addr+path, bytes.NewBufferString(body))
	if err != nil {
		e.rig.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		e.rig.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.rig.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestDoorOverREST(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	admin := r.mint(access.Grant{Identity: "app", Room: "lobby", RoomAdmin: true}, time.Hour)
	do := func(method, path, token, body string, want int) (door wire.Door) {
		t.Helper()
		status, text := e.rest(method, path, token, body)
		if status != want {
			t.Errorf("%s %s: %d %s, want %d", method, path, status, text, want)
		}
		if status == http.StatusOK {
			if err := json.Unmarshal([]byte(text), &door); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		return door
	}
	if door := do("PATCH", "/api/v1/door?room=lobby", admin, `{"cap":1,"closed":false}`, 200); *door.Cap != 1 {
		t.Errorf("the door is %+v", door)
	}
	r.placer.hasDoor = true
	r.show("ann")
	bob, cy := e.asks("bob", 0, true), (*client)(nil)
	bob.waitsAt(1)
	cy = e.asks("cy", 0, true)
	cy.waitsAt(2)
	if door := do("POST", "/api/v1/waiting?room=lobby&identity=cy", admin, "", 200); door.Line[0].Identity != "cy" || door.Inside != 1 {
		t.Errorf("after admitting cy into a full room the door is %+v", door)
	}
	cy.waitsAt(1)
	do("DELETE", "/api/v1/waiting?room=lobby&identity=bob", admin, "", 200)
	for {
		if m, ok := bob.next().(*wire.Bye); ok {
			if m.Code != wire.CodeTurnedAway {
				t.Errorf("bob hears %+v", m)
			}
			break
		}
	}
	if door := do("GET", "/api/v1/door?room=lobby", admin, "", 200); door.Length != 1 {
		t.Errorf("the door is %+v", door)
	}
	if door := do("PATCH", "/api/v1/door?room=lobby", admin, `{"cap":-1}`, 200); door.Cap != nil {
		t.Errorf("the cap is lifted: %+v", door)
	}
	hear[*wire.Joined](cy)
	do("GET", "/api/v1/door?room=lobby", r.token("lobby", "ann"), "", 403)
	do("GET", "/api/v1/door?room=other", admin, "", 403)
	do("PATCH", "/api/v1/door?room=lobby", admin, `{"cap":-2}`, 400)
	do("PATCH", "/api/v1/door?room=lobby", admin, `cap`, 400)
	do("POST", "/api/v1/waiting?room=lobby", admin, "", 400)
	do("POST", "/api/v1/waiting?room=lobby&identity=nobody", admin, "", 400)
}
