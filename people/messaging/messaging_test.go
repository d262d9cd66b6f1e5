package messaging

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNodesComeAndGoUnderMessages: three nodes, a fourth, one killed, under a steady 5,000 messages.
func TestNodesComeAndGoUnderMessages(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := newWorld(t, seed, 0.03)
			for _, name := range []string{"n1", "n2", "n3"} {
				w.add(name)
			}
			w.spread(0, 200*time.Millisecond)
			const users, messages = 200, 5000
			for i := range users {
				w.page(UserID(fmt.Sprint("user-", i)), w.any())
			}
			for i := range users / 10 { // a second device
				w.page(UserID(fmt.Sprint("user-", i)), w.any())
			}
			w.run(2*time.Second, func() bool { return false })
			moved := w.moved()
			for i := range messages {
				w.after(time.Duration(i)*2*time.Millisecond, func() {
					p := w.pages[w.random.IntN(len(w.pages))]
					p.send(UserID(fmt.Sprint("user-", w.random.IntN(users))))
				})
			}
			w.after(3*time.Second, func() { w.add("n4"); w.spread(10*time.Millisecond, 400*time.Millisecond) })
			var grown int
			w.after(5*time.Second, func() { grown = w.moved() - moved })
			w.after(6*time.Second, func() { w.kill(w.peers[w.random.IntN(3)]); w.spread(300*time.Millisecond, 1200*time.Millisecond) })
			if !w.run(time.Minute, func() bool { return w.sent() == messages && w.settled() }) {
				t.Fatal("some messages were not answered")
			}
			w.run(2*time.Second, func() bool { return false }) // for second devices
			w.checkOrder()
			if delivered := w.checkDelivered(); delivered != messages {
				t.Errorf("%d of %d were delivered", delivered, messages)
			}
			if share := float64(grown) / float64(w.registered()); share < 0.15 || share > 0.35 {
				t.Errorf("%.0f %% of the registrations moved, want about a quarter", 100*share)
			}
			t.Logf("%.1f frames a message, %d repeats dropped, %d registrations moved", float64(w.frames)/messages, w.dropped(), grown)
		})
	}
}

func (w *world) moved() int {
	total := 0
	for _, n := range w.nodes {
		total += n.Counters().Moved
	}
	return total
}

func (w *world) sent() int {
	total := 0
	for _, p := range w.pages {
		total += int(p.seq)
	}
	return total
}

func (w *world) dropped() int {
	total := 0
	for _, p := range w.pages {
		total += p.again
	}
	return total
}

// registered counts users once for each node that has clients of theirs.
func (w *world) registered() int {
	total := 0
	for _, n := range w.nodes {
		total += n.Counters().Users
	}
	return total
}

// pair is two nodes without loss that know each other.
func pair(t *testing.T) (w *world, a, b Peer) {
	w = newWorld(t, 1, 0)
	a, b = w.add("a"), w.add("b")
	w.spread(0, time.Millisecond)
	w.run(time.Second, func() bool { return false })
	return w, a, b
}

func TestOfflineIsAnsweredAtOnce(t *testing.T) {
	w, a, _ := pair(t)
	w.offline["nobody"] = true
	p := w.page("alice", a)
	p.send("nobody")
	if !w.run(200*time.Millisecond, w.settled) || p.states[sending{"nobody", 1}] != StateOffline {
		t.Fatalf("state %v", p.states)
	}
}

// TestBetweenTwoNodes: presence says online, nobody has a client: the message waits, for HoldFor.
func TestBetweenTwoNodes(t *testing.T) {
	w, a, b := pair(t)
	p := w.page("alice", a)
	p.send("bob")
	p.send("carol")
	w.after(2*time.Second, func() { w.page("bob", b) })
	if !w.run(5*time.Second, w.settled) {
		t.Fatal("not answered")
	}
	if p.states[sending{"bob", 1}] != StateDelivered || p.states[sending{"carol", 2}] != StateGaveUp {
		t.Fatalf("states %v", p.states)
	}
	w.checkOrder()
}

// TestPresenceDoesNotKnowYet: in a new cluster nobody can tell who is offline. A message waits for who connects meanwhile, and
// is answered once presence knows.
func TestPresenceDoesNotKnowYet(t *testing.T) {
	w, a, b := pair(t)
	w.told = w.now.Add(12 * time.Second)
	w.offline["nobody"] = true
	p := w.page("alice", a)
	for _, to := range []UserID{"bob", "nobody", "carol"} {
		p.send(to)
	}
	w.after(8*time.Second, func() { w.page("bob", b) })
	if !w.run(9*time.Second, func() bool { return p.states[sending{"bob", 1}] == StateDelivered }) || len(p.unsaid) != 2 {
		t.Fatalf("states %v", p.states)
	}
	if !w.run(6*time.Second, func() bool { return p.states[sending{"nobody", 2}] == StateOffline }) {
		t.Fatalf("states %v", p.states)
	}
	// From the moment when presence says that the user is online, the message waits for a client.
	if !w.run(4*time.Second, w.settled) || p.states[sending{"carol", 3}] != StateGaveUp {
		t.Fatalf("states %v", p.states)
	}
	w.checkOrder()
}

// TestPresenceThatNeverKnows: a message is kept as long as any other, and no longer, also if nothing is answered.
func TestPresenceThatNeverKnows(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w, a, _ := pair(t)
		w.told, w.silent = w.now.Add(time.Hour), silent
		p := w.page("alice", a)
		p.send("bob")
		if w.run(19*time.Second, w.settled) || !w.run(2*time.Second, w.settled) || p.states[sending{"bob", 1}] != StateGaveUp {
			t.Fatalf("silent %v: states %v", silent, p.states)
		}
	}
}

func TestMessagesStayInTheRoom(t *testing.T) {
	w, a, b := pair(t)
	in, out := w.page("bob", b), w.page("bob", a)
	in.client.Room = "r"
	p := w.page("alice", a)
	p.room = "r"
	p.send("bob")
	if !w.run(5*time.Second, w.settled) || len(in.got) != 1 || len(out.got) != 0 {
		t.Fatalf("%d inside, %d outside", len(in.got), len(out.got))
	}
}

// TestWhoIsNotInTheRoomDelaysNobody: what bob may not get waits by itself, and is not said to be delivered.
func TestWhoIsNotInTheRoomDelaysNobody(t *testing.T) {
	w, a, b := pair(t)
	bob, inside, outside := w.page("bob", b), w.page("alice", a), w.page("carol", a)
	inside.room = "r"
	w.run(100*time.Millisecond, func() bool { return false })
	inside.send("bob")
	outside.send("bob")
	outside.send("bob")
	if !w.run(200*time.Millisecond, func() bool { return len(outside.unsaid) == 0 }) || len(bob.got) != 2 {
		t.Fatalf("bob got %d, want those of carol", len(bob.got))
	}
	if !w.run(5*time.Second, w.settled) || inside.states[sending{"bob", 1}] != StateGaveUp {
		t.Fatalf("states %v", inside.states)
	}
}

// TestAFloodDelaysNobodyElse: bob's page reads nothing, and his queues fill; alice to carol takes as long as ever.
func TestAFloodDelaysNobodyElse(t *testing.T) {
	w, a, b := pair(t)
	w.nodes[b].Open(&Client{User: "bob", Hand: func(Message) {}, Tell: func(Status) {}})
	refused := map[error]int{}
	for i := range 400 {
		from := UserID(fmt.Sprint("flooder-", i%7))
		client := &Client{User: from, Hand: func(Message) {}, Tell: func(Status) {}}
		refused[w.nodes[a].Submit(client, "bob", Message{From: from, Stream: "s", Seq: uint64(i + 1)})]++
	}
	if refused[ErrReceiverFull] == 0 || refused[nil] != DefaultConfig().MaxPerReceiver {
		t.Fatalf("refusals %v", refused)
	}
	p := w.page("alice", a)
	w.page("carol", b)
	w.run(100*time.Millisecond, func() bool { return false })
	p.send("carol")
	if !w.run(100*time.Millisecond, w.settled) {
		t.Fatal("the flood delays others")
	}
	w.run(time.Minute, func() bool { return w.nodes[a].Counters().Waiting == 0 })
	if c := w.nodes[a].Counters(); c.Waiting != 0 || c.Bytes != 0 || c.GaveUp != DefaultConfig().MaxPerReceiver {
		t.Fatalf("what nobody answered is kept: %+v", c)
	}
}

func TestASenderWaitsForAnswers(t *testing.T) {
	w, a, _ := pair(t)
	client := &Client{User: "alice", Hand: func(Message) {}, Tell: func(Status) {}}
	var err error
	for i := range DefaultConfig().MaxPerSender + 1 {
		err = w.nodes[a].Submit(client, UserID(fmt.Sprint("user-", i)), Message{From: "alice", Stream: "s", Seq: uint64(i + 1)})
	}
	if !errors.Is(err, ErrSenderFull) {
		t.Fatalf("got %v", err)
	}
}

// TestADeathThatWasNone: b is dropped from a's view and comes back without knowing it.
func TestADeathThatWasNone(t *testing.T) {
	w, a, b := pair(t)
	p := w.page("alice", a)
	for i := range 20 {
		w.page(UserID(fmt.Sprint("user-", i)), b)
	}
	w.run(time.Second, func() bool { return false })
	w.nodes[a].SetPeers([]Peer{a})
	w.nodes[a].SetPeers([]Peer{a, b})
	for i := range 20 {
		p.send(UserID(fmt.Sprint("user-", i)))
	}
	if !w.run(2*time.Second, w.settled) || w.checkDelivered() != 20 {
		t.Fatal("not all were delivered")
	}
	w.checkOrder()
}

// TestTheSecondDeviceIsAtAPausedNode: everybody has one page at a node that lives and one at a node that is paused. Both pages
// get everything that was said meanwhile, once and in order, whether frames waited for the node or were lost.
func TestTheSecondDeviceIsAtAPausedNode(t *testing.T) {
	for _, length := range []time.Duration{time.Second, 4 * time.Second, 14 * time.Second} {
		for _, lossy := range []bool{false, true} {
			for seed := range uint64(4) {
				t.Run(fmt.Sprint(length, lossy, seed), func(t *testing.T) { pausedDevice(t, seed, length, lossy) })
			}
		}
	}
}

func pausedDevice(t *testing.T, seed uint64, length time.Duration, lossy bool) {
	w := newWorld(t, seed, 0.02)
	a, b, c := w.add("a"), w.add("b"), w.add("c")
	w.spread(0, 200*time.Millisecond)
	const users = 8
	for i := range users {
		w.page(UserID(fmt.Sprint("user-", i)), []Peer{a, c}[i%2])
		w.page(UserID(fmt.Sprint("user-", i)), b)
	}
	from := w.page("alice", a)
	w.run(2*time.Second, func() bool { return false })
	w.pause(b, length, lossy)
	const every = 70 * time.Millisecond
	messages := int((length + time.Second) / every)
	for i := range messages {
		to := UserID(fmt.Sprint("user-", i/2%users*(i%2))) // every other one to the same user
		w.after(time.Duration(i)*every, func() { from.send(to) })
	}
	if !w.run(time.Minute, func() bool { return w.sent() == messages && w.settled() }) {
		t.Fatal("some messages were not answered")
	}
	w.run(10*time.Second, func() bool { return false })
	w.checkOrder()
	if delivered := w.checkDelivered(); delivered != messages {
		t.Errorf("%d of %d were delivered", delivered, messages)
	}
}

func TestTheTableIsAMapOfSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, model := newTable(), map[Key]map[Peer]bool{}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			user := KeyOf(UserID(fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "user"))))
			holder := Peer{ID: ring.NodeID(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "holder")))}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				table.drop(holder)
				for _, set := range model {
					delete(set, holder)
				}
			case 1, 2, 3:
				table.remove(user, holder)
				delete(model[user], holder)
			default:
				table.add(user, holder)
				if model[user] == nil {
					model[user] = map[Peer]bool{}
				}
				model[user][holder] = true
			}
			for user, set := range model {
				got := table.of(user)
				if len(got) != len(set) {
					t.Fatalf("holders %v, want %v", got, set)
				}
				for _, holder := range got {
					if !set[holder] {
						t.Fatalf("holder %v is not in %v", holder, set)
					}
				}
			}
		}
	})
}
