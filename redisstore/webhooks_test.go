package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/webhook"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

const receiver = "https://app.example.org/webhook"

// tell writes the roster of a media node that tells receivers. "+a1" puts a peer, "+a1=ms" one with microphone and screen, "-a1" drops one.
func (r rosterRig) tell(p pin.Pin, c roster.Change, signs ...string) {
	r.t.Helper()
	c.Room, c.Pin, c.Told, c.SID = rosterRoom, p, true, "RM_new"
	for _, sign := range signs {
		id, shows, known := strings.Cut(sign[1:], "=")
		who := roster.Peer{ID: id, Identity: id[:1], Name: strings.ToUpper(id[:1]), Hidden: id[0] == 'h', Since: time.Now().Add(-time.Minute)}
		if known {
			who.Shows = roster.SourcesKnown
		}
		for letter, bit := range map[string]roster.Sources{"m": roster.Microphone, "c": roster.Camera, "s": roster.Screen, "a": roster.ScreenAudio} {
			if strings.Contains(shows, letter) {
				who.Shows |= bit
			}
		}
		if sign[0] == '+' {
			c.Put = append(c.Put, who)
		} else {
			c.Drop = append(c.Drop, roster.Leave{Peer: who, LastSeen: time.Now()})
		}
	}
	if got, err := r.WriteRosters(r.t.Context(), []roster.Change{c}); err != nil || got[0] != roster.Written {
		r.t.Fatalf("change %d: %v, %v", c.Seq, got, err)
	}
}

// hears reads what waits for the receiver, and takes it.
func (r rosterRig) hears(want string) (facts []webhook.Fact) {
	r.t.Helper()
	facts, _, err := r.Waiting(r.t.Context(), rosterRoom, receiver, 100)
	if err != nil {
		r.t.Fatal(err)
	}
	words := make([]string, 0, len(facts))
	for _, f := range facts {
		word := string(f.Kind)
		if f.Peer.ID != "" {
			word += " " + f.Peer.ID
		}
		if f.Track.Source != "" {
			word += fmt.Sprint(" ", f.Track.Source, f.Track.Number)
		}
		if f.To != "" {
			word += fmt.Sprintf(" %s>%s", f.From, f.To)
		}
		words = append(words, fmt.Sprint(word, " ", f.People))
	}
	if got := strings.Join(words, "; "); got != want {
		r.t.Fatalf("told\n\t%s\nwant\n\t%s", got, want)
	}
	if len(facts) > 0 {
		if err := r.Sent(r.t.Context(), rosterRoom, facts[len(facts)-1].Position, receiver, []string{receiver}); err != nil {
			r.t.Fatal(err)
		}
	}
	return facts
}

func (r rosterRig) look() {
	r.t.Helper()
	if _, _, err := r.Look(r.t.Context(), 0, 100); err != nil {
		r.t.Fatal(err)
	}
}

func TestWebhooksFollowTheRoster(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		ctx, old, next := t.Context(), storetest.At("sfu-1", 1000, 1), storetest.At("sfu-2", 1001, 2)
		r.claim(old)
		r.tell(old, roster.Change{Seq: 1, Settled: true}, "+a1=", "+h1=")
		began := r.hears("room_started 0; participant_joined a1 1; participant_joined h1 1")
		r.tell(old, roster.Change{Seq: 2, After: 1}, "+a1=mcs")
		r.hears("track_published a1 MICROPHONE1 1; track_published a1 CAMERA2 1; track_published a1 SCREEN_SHARE3 1")
		// A muted camera stays published, and a screen that is shown again is another track.
		r.tell(old, roster.Change{Seq: 3, After: 2}, "+a1=m", "+b1=")
		r.hears("track_unpublished a1 SCREEN_SHARE3 1; participant_joined b1 2")
		r.tell(old, roster.Change{Seq: 4, After: 3}, "+a1=ms", "+b1=")
		r.hears("track_published a1 SCREEN_SHARE4 2")
		// Somebody came and went between two writes.
		r.tell(old, roster.Change{Seq: 5, After: 4}, "-c1")
		r.hears("participant_joined c1 3; participant_left c1 2")
		// A repeated write tells nothing new.
		r.tell(old, roster.Change{Seq: 5, After: 4}, "+b1=")
		r.hears("")

		// The node dies. People who come over have neither left nor joined, and their tracks stand.
		r.swapTo(old, next)
		r.look()
		r.hears("")
		r.tell(next, roster.Change{Seq: 1}, "+a1")
		r.hears("room_rehomed sfu-1>sfu-2 2")
		r.tell(next, roster.Change{Seq: 2, After: 1}, "+a1=ms")
		r.hears("")
		r.tell(next, roster.Change{Seq: 3, Settled: true}, "+a1=ms")
		r.hears("participant_left b1 1; participant_left h1 1")

		// The room ends, and another one begins.
		if removed, err := r.Remove(ctx, rosterRoom, next); !removed || err != nil {
			t.Fatal(removed, err)
		}
		r.look()
		ended := r.hears("track_unpublished a1 MICROPHONE1 1; track_unpublished a1 CAMERA2 1; track_unpublished a1 SCREEN_SHARE4 1; participant_left a1 0; room_finished 0")
		if ended[4].SID != began[0].SID || !ended[4].Began.Equal(began[0].Began) {
			t.Errorf("%+v ends %+v", ended[4], began[0])
		}
		for _, key := range r.keys.webhookKeys(rosterRoom)[2:4] {
			if n, err := r.raw.Exists(ctx, key).Result(); n != 0 || err != nil {
				t.Errorf("%s is left: %v", key, err)
			}
		}
		third := storetest.At("sfu-1", 1002, 3)
		r.claim(third)
		r.tell(third, roster.Change{Seq: 7, Settled: true}, "+a2=")
		if again := r.hears("room_started 0; participant_joined a2 1"); again[0].ID() == began[0].ID() && again[0].SID != began[0].SID {
			t.Error("two lives of a room have one id")
		}
	})
}

// What a media node did not queue, because it died after its write, is found by looking. Marks name the rooms to read.
func TestWebhooksThatWereMissedAreFound(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		owner := storetest.At("sfu-1", 1000, 1)
		r.claim(owner)
		r.tell(owner, roster.Change{Seq: 1, Settled: true}, "+a1=")
		if rooms, last, err := r.Marked(t.Context(), 0); err != nil || len(rooms) != 1 || rooms[0] != rosterRoom || last == 0 {
			t.Fatalf("marked: %v, %d, %v", rooms, last, err)
		}
		r.write(roster.Written, owner, 2, 1, "+b1", "-a1")
		r.hears("room_started 0; participant_joined a1 1")
		r.look()
		r.hears("participant_left a1 0; participant_joined b1 1")
		r.look()
		r.hears("")
		// Its roster is missing while the pin stands: nobody has left yet.
		if err := r.raw.Del(t.Context(), r.keys.roster(rosterRoom)).Err(); err != nil {
			t.Fatal(err)
		}
		r.look()
		r.look()
		r.hears("")
	})
}

// A store that lost everything gets the same facts with the same ids.
func TestWebhooksAfterALossHaveTheSameIDs(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		ctx, owner := t.Context(), storetest.At("sfu-1", 1000, 1)
		r.claim(owner)
		r.tell(owner, roster.Change{Seq: 1, Settled: true}, "+a1=m")
		const told = "room_started 0; participant_joined a1 1; track_published a1 MICROPHONE1 1"
		before := r.hears(told)
		if err := r.raw.Del(ctx, r.keys.roster(rosterRoom)).Err(); err != nil {
			t.Fatal(err)
		}
		if err := r.raw.Del(ctx, r.keys.webhookKeys(rosterRoom)[2:4]...).Err(); err != nil {
			t.Fatal(err)
		}
		r.tell(owner, roster.Change{Seq: 2, Settled: true}, "+a1=m")
		for i, f := range r.hears(told) {
			if f.ID() != before[i].ID() {
				t.Errorf("%s has another id", f.Kind)
			}
		}
	})
}

// A room that ends keeps its pin. It is finished once, also if a sender looks, and another life may follow under the same pin.
func TestWebhooksOfARoomThatEnds(t *testing.T) {
	onRosterStores(t, func(r rosterRig) {
		owner := storetest.At("sfu-1", 1000, 1)
		r.claim(owner)
		r.tell(owner, roster.Change{Seq: 1, Settled: true}, "+a1=")
		r.tell(owner, roster.Change{Seq: 2, After: 1}, "-a1")
		r.look()
		r.hears("room_started 0; participant_joined a1 1; participant_left a1 0")
		r.tell(owner, roster.Change{Seq: 3, After: 2, Closed: true})
		r.look()
		r.hears("room_finished 0")
		r.look()
		r.tell(owner, roster.Change{Seq: 4, Settled: true})
		r.hears("")
		r.tell(owner, roster.Change{Seq: 5, After: 4}, "+a2=")
		r.hears("room_started 0; participant_joined a2 1")
	})
}

func TestOneSenderHasTheLease(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, store := t.Context(), open(t, patient(server))
		lead := func(sender string, life time.Duration, want bool) {
			t.Helper()
			if got, err := store.Lead(ctx, sender, life); got != want || err != nil {
				t.Fatalf("%s: %t, %v", sender, got, err)
			}
		}
		if wanted, err := store.WebhooksWanted(ctx); wanted || err != nil {
			t.Fatalf("wanted before anybody asked: %v", err)
		}
		lead("one", time.Minute, true)
		lead("two", time.Minute, false)
		lead("one", time.Minute, true)
		lead("two", 0, false)
		lead("two", time.Minute, false)
		lead("one", 0, false)
		lead("two", time.Minute, true)
		if wanted, err := store.WebhooksWanted(ctx); !wanted || err != nil {
			t.Fatalf("not wanted: %v", err)
		}
	})
}

// Deaths of nodes come from the events since the first question, for each receiver by itself.
func TestWebhooksOfNodes(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, store := t.Context(), open(t, patient(server))
		hears := func(who string, want int) []webhook.Fact {
			t.Helper()
			facts, _, err := store.Waiting(ctx, "", who, 10)
			if err != nil || len(facts) != want {
				t.Fatalf("%s hears %+v, %v", who, facts, err)
			}
			return facts
		}
		hears(receiver, 0)
		for i := range 3 {
			node := ring.NodeID(fmt.Sprint("sfu-", i))
			if err := store.AppendEvents(ctx, []events.Event{{Kind: events.NodeUp, Node: node}, {Kind: events.NodeDown, Node: node, Cause: "killed"}}); err != nil {
				t.Fatal(err)
			}
		}
		facts := hears(receiver, 3)
		if facts[0].From != "sfu-0" || facts[0].Cause != "killed" || facts[0].ID() == facts[1].ID() {
			t.Errorf("%+v", facts)
		}
		if err := store.Sent(ctx, "", facts[1].Position, receiver, []string{receiver}); err != nil {
			t.Fatal(err)
		}
		hears(receiver, 1)
	})
}
