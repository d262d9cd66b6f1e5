package forward

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"
)

// onTwoStages runs a scenario with the room of an owner and the same room on a branch.
func onTwoStages(t *testing.T, scenario func(ctx context.Context, owner, branch *stage)) {
	onStage(t, Config{}, func(owner *stage) {
		branch := &stage{t: owner.t, room: NewRoom(Config{OnSlots: func(PeerID) {}}, slog.New(slog.DiscardHandler))}
		ctx, cancel := context.WithCancel(owner.t.Context())
		ended := make(chan error, 1)
		go func() { ended <- branch.room.Run(ctx) }()
		scenario(ctx, owner, branch)
		cancel()
		<-ended
	})
}

// wireLink carries one layer from the owner to the branch. It delays and loses packets, and sends again what the branch lacks.
type wireLink struct {
	owner, remote *Layer
	branch        *stage
	delay         time.Duration
	loss          float64
	random        *rand.Rand
	wire          chan onWire
	orders        chan bool

	mu      sync.Mutex
	kept    map[uint16][]byte // what was sent
	got     map[uint16]bool
	highest uint16
	begun   bool
	packets int // without repetitions
	orderly int // orders
	plis    []time.Time
}

type onWire struct {
	at     time.Time
	packet []byte
}

// Packet implements Tap: on the link the number is the extended one's lower half.
func (k *wireLink) Packet(packet []byte, number uint32) {
	packet = slices.Clone(packet)
	binary.BigEndian.PutUint16(packet[2:], uint16(number))
	k.mu.Lock()
	k.packets++
	k.kept[uint16(number)] = packet
	lost := k.random.Float64() < k.loss
	k.mu.Unlock()
	if !lost {
		k.wire <- onWire{time.Now().Add(k.delay), packet}
	}
}

// Report implements Tap.
func (*wireLink) Report(uint64, uint32) {}

// Repeat implements Tap.
func (*wireLink) Repeat(uint16) {}

func (k *wireLink) carry(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case wanted := <-k.orders:
			// One goroutine, because orders must not overtake each other.
			<-time.After(k.delay)
			if wanted {
				k.owner.Tap(k)
			} else {
				k.owner.Untap(k)
			}
		case w := <-k.wire:
			<-time.After(time.Until(w.at))
			k.arrive(w.packet)
		}
	}
}

// arrive asks again for what is missing. Repetitions are not lost.
func (k *wireLink) arrive(packet []byte) {
	number := binary.BigEndian.Uint16(packet[2:])
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.got[number] {
		return
	}
	k.got[number] = true
	ahead := int16(number-k.highest) > 0
	for missing := k.highest + 1; k.begun && ahead && missing != number; missing++ {
		if again := k.kept[missing]; again != nil {
			time.AfterFunc(2*k.delay, func() { k.arrive(again) })
		}
	}
	if !k.begun || ahead {
		k.begun, k.highest = true, number
	}
	p := k.branch.room.GetPacket()
	p.SetLength(copy(p.Buffer(), packet))
	k.remote.Push(p)
}

func (k *wireLink) crossed() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.packets
}

// link makes a layer of the owner's a remote layer of the branch.
func link(ctx context.Context, branch *stage, of *Layer, delay time.Duration, loss float64) *wireLink {
	k := &wireLink{
		owner: of, branch: branch, delay: delay, loss: loss, random: rand.New(rand.NewPCG(1, 2)), wire: make(chan onWire, 4096), orders: make(chan bool, 64),
		kept: map[uint16][]byte{}, got: map[uint16]bool{},
	}
	cfg := of.cfg
	cfg.SendPLI = func() {
		k.mu.Lock()
		k.plis = append(k.plis, time.Now())
		k.mu.Unlock()
		time.AfterFunc(delay, of.KeyframeRequested)
	}
	cfg.Via = k
	cfg.OnWanted = func(wanted bool) {
		k.mu.Lock()
		k.orderly++
		k.mu.Unlock()
		k.orders <- wanted
	}
	k.remote = branch.room.AddLayer(cfg)
	go k.carry(ctx)
	synctest.Wait()
	return k
}

// tell passes on what the owner knows of the layers, as a link does from time to time.
func tell(links []*wireLink) {
	for _, k := range links {
		if states, ok := k.owner.room.RemoteStates([]*Layer{k.owner}); ok {
			k.remote.Tell(states[0])
		}
	}
	synctest.Wait()
}

// heightOf is the height of the last keyframe among packets.
func heightOf(packets []rtp.Packet) (height int) {
	for _, p := range packets {
		if h := parseVP8(p.Payload).Height; h > 0 {
			height = h
		}
	}
	return height
}

// TestALayerCrossesOnceAndOnlyWhileItIsWanted, however many want it; each viewer gets the size that it asked for, in whole pictures, also
// over a link that loses packets.
func TestALayerCrossesOnceAndOnlyWhileItIsWanted(t *testing.T) {
	for _, loss := range []float64{0, 0.02} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			onTwoStages(t, func(ctx context.Context, owner, branch *stage) {
				alice := owner.simulcast("alice")
				var links []*wireLink
				for _, c := range alice.layers {
					links = append(links, link(ctx, branch, c.layer, time.Millisecond, loss))
				}
				counts := func() (counts [3]int) {
					for i, k := range links {
						counts[i] = k.crossed()
					}
					return counts
				}
				run := func(d time.Duration) {
					for range d / (200 * time.Millisecond) {
						alice.run(200 * time.Millisecond)
						tell(links)
					}
				}
				run(time.Second)
				if got := counts(); got != [3]int{} {
					t.Fatalf("%v packets crossed for nobody", got)
				}
				// Forty come at once; every tenth shows a large picture.
				const viewers = 40
				wanted := func(i int) int { return map[bool]int{true: 720, false: 180}[i%10 == 0] }
				var views []*screenful
				show := func(i, height int) {
					branch.room.SetView(PeerID(strconv.Itoa(i)), []Want{{Peer: "alice", Source: SourceCamera, Width: height * 16 / 9, Height: height}})
				}
				for i := range viewers {
					v := branch.slot(PeerID(strconv.Itoa(i)), "1", KindVideo)
					v.slot.Ready()
					show(i, wanted(i))
					views = append(views, v)
				}
				run(2 * time.Second)
				for i, v := range views {
					if got := heightOf(v.take()); got != wanted(i) {
						t.Errorf("viewer %d is shown %d lines, want %d", i, got, wanted(i))
					}
				}
				before := counts()
				run(2 * time.Second)
				got := counts()
				// The publisher sends 1, 3 and 10 packets in 40 ms.
				if low, middle, high := got[0]-before[0], got[1]-before[1], got[2]-before[2]; low != 50 || middle != 0 || high != 500 {
					t.Errorf("%d, %d and %d packets of the layers crossed in 2 s, want 50, 0 and 500", low, middle, high)
				}
				for i, v := range views {
					checkPictures(t, i, v.take())
				}
				// One page grows: the middle layer begins to cross.
				show(1, 360)
				run(time.Second)
				if got := heightOf(views[1].take()); got != 360 {
					t.Errorf("a page that grew is shown %d lines, want 360", got)
				}
				for i := range viewers {
					branch.room.RemovePeer(PeerID(strconv.Itoa(i)))
				}
				run(remoteLinger + time.Second)
				before = counts()
				run(time.Second)
				if got := counts(); got != before {
					t.Errorf("%v packets crossed after everybody had left, then %v", before, got)
				}
				for i, k := range links {
					for j := 1; j < len(k.plis); j++ {
						if apart := k.plis[j].Sub(k.plis[j-1]); apart < defaultMinPLIInterval {
							t.Errorf("layer %d: keyframes are asked for %v apart", i, apart)
						}
					}
					// The lowest was wanted once. A slot begins with the lowest layer until heights are known.
					if k.orderly%2 != 0 || k.orderly > 6 {
						t.Errorf("layer %d: %d orders", i, k.orderly)
					}
				}
			})
		})
	}
}

// checkPictures fails the test unless the packets are whole pictures, without a packet of another one.
func checkPictures(t *testing.T, viewer int, packets []rtp.Packet) {
	t.Helper()
	if len(packets) == 0 {
		t.Errorf("viewer %d gets nothing", viewer)
		return
	}
	slices.SortFunc(packets, func(a, b rtp.Packet) int { return int(int16(a.SequenceNumber - b.SequenceNumber)) })
	for i := 1; i < len(packets); i++ {
		a, b := &packets[i-1], &packets[i]
		pictures := parseVP8(b.Payload).PictureID - parseVP8(a.Payload).PictureID
		if b.SequenceNumber != a.SequenceNumber+1 || (a.Timestamp == b.Timestamp) != (pictures == 0) || pictures > 1 {
			t.Fatalf("viewer %d: packet %d at %d of picture %d, then %d at %d of picture %d", viewer,
				a.SequenceNumber, a.Timestamp, parseVP8(a.Payload).PictureID, b.SequenceNumber, b.Timestamp, parseVP8(b.Payload).PictureID)
		}
	}
}

// keptTap keeps what a tap is given.
type keptTap struct {
	mu      sync.Mutex
	packets [][]byte
	numbers []uint32
}

// Packet implements Tap.
func (k *keptTap) Packet(packet []byte, number uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.packets, k.numbers = append(k.packets, slices.Clone(packet)), append(k.numbers, number)
}

// Report implements Tap.
func (*keptTap) Report(uint64, uint32) {}

// Repeat implements Tap.
func (*keptTap) Repeat(uint16) {}

// TestATapGetsWhatThePublisherSent, although slots have patched the packets in the cache: numbers of pictures and frames, and the types of
// redundant sound.
func TestATapGetsWhatThePublisherSent(t *testing.T) {
	t.Run("pictures", func(t *testing.T) {
		onStage(t, Config{}, func(st *stage) {
			bob, alice := st.camera("bob", "", 180), st.camera("alice", "", 180)
			view := st.slot("carol", "1", KindVideo)
			view.slot.Ready()
			bob.frame(true, 3)
			before := &keptTap{}
			alice.layer.Tap(before)
			// carol's stream goes on from bob's numbers.
			st.room.SetView("carol", []Want{{Peer: "alice", Source: SourceCamera, Width: 320, Height: 180}})
			alice.frame(true, 3)
			alice.frame(false, 2)
			after := &keptTap{}
			alice.layer.Tap(after)
			synctest.Wait()
			if len(after.packets) != 5 || !slices.EqualFunc(before.packets, after.packets, slices.Equal) || !slices.Equal(before.numbers, after.numbers) {
				t.Errorf("a tap that came late got other packets: %d of %d", len(after.packets), len(before.packets))
			}
			if alice.asked() > 1 {
				t.Errorf("%d keyframes were asked for", alice.asked())
			}
			for range tapReplayPackets {
				alice.frame(false, 1)
			}
			asked := alice.asked()
			none := &keptTap{}
			alice.layer.Tap(none)
			synctest.Wait()
			if len(none.packets) != 0 || alice.asked() != asked+1 {
				t.Errorf("an old keyframe: %d packets came and %d keyframes were asked for, want none and one", len(none.packets), alice.asked()-asked)
			}
			alice.layer.Untap(before)
			got := len(before.packets)
			alice.frame(true, 2)
			if len(before.packets) != got || len(none.packets) != 2 {
				t.Errorf("%d packets came after the tap had ended, %d by the other one", len(before.packets)-got, len(none.packets))
			}
		})
	})
	t.Run("descriptors", func(t *testing.T) {
		onStage(t, Config{}, func(st *stage) {
			alice := st.scalable("alice", l1t3)
			view := st.watcher("bob", receiverID, 180)
			first := &keptTap{}
			alice.layer.Tap(first)
			alice.run(200 * time.Millisecond)
			second := &keptTap{}
			alice.layer.Tap(second)
			synctest.Wait()
			// The keyframe with which the first tap began was followed by another one.
			n := len(first.packets) - len(second.packets)
			if len(view.take()) == 0 || len(second.packets) == 0 || n < 0 || !slices.EqualFunc(first.packets[n:], second.packets, slices.Equal) {
				t.Errorf("a tap that came late got %d packets, not the last ones of %d", len(second.packets), len(first.packets))
			}
		})
	})
	t.Run("redundant sound", func(t *testing.T) {
		onStage(t, Config{}, func(st *stage) {
			alice := st.room.AddLayer(LayerConfig{Peer: "alice", Source: SourceMicrophone, Kind: KindAudio, Codec: opus, REDPayloadType: 63})
			v := &screenful{}
			red := Codec{MimeType: "audio/red", Fmtp: "109/109", ClockRate: 48000, PayloadType: 64}
			v.slot = st.room.AddSlot(SlotConfig{Peer: "bob", Mid: "1", Kind: KindAudio, Writer: v, SSRC: 1, Codecs: []Codec{red, {MimeType: "audio/opus", ClockRate: 48000, PayloadType: 109}}})
			v.slot.Ready()
			tap := &keptTap{}
			alice.Tap(tap)
			synctest.Wait()
			h := rtp.Header{Version: 2, PayloadType: 63, SequenceNumber: 9, Timestamp: 960}
			payload := redPayload(111, []byte("two"), []byte("one"))
			st.push(alice, h, payload)
			synctest.Wait()
			sent := v.take()
			if len(sent) != 1 || slices.Equal(sent[0].Payload, payload) {
				t.Fatalf("bob got %v", sent)
			}
			if want := marshal(t, h, payload); len(tap.packets) != 1 || !slices.Equal(tap.packets[0], want) {
				t.Errorf("the tap got %x, want %x", tap.packets, want)
			}
			cached := make(chan []byte, 1)
			st.room.post(func() { cached <- slices.Clone(alice.cache.get(alice.tracker.Highest).original()) })
			if want := marshal(t, h, payload); !slices.Equal(<-cached, want) {
				t.Error("the packet in the cache is not what was sent")
			}
		})
	})
}

// TestARemoteLayerIsWantedForAWhile after its last viewer, and no more when it ends. What its publisher's node says counts while nothing comes.
func TestARemoteLayerIsWantedForAWhile(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		var orders []bool
		alice := &camera{st: st, height: 360}
		alice.layer = st.room.AddLayer(LayerConfig{
			Peer: "alice", Source: SourceCamera, Kind: KindVideo, Codec: vp8, Via: "a link", OnWanted: func(wanted bool) { orders = append(orders, wanted) },
		})
		told := RemoteState{Alive: true, Height: 360, BitsPerSecond: 500_000}
		alice.layer.Tell(told)
		is := func(when string, wanted ...bool) {
			t.Helper()
			synctest.Wait()
			if states, ok := st.room.RemoteStates([]*Layer{alice.layer}); !ok || states[0] != told || !slices.Equal(orders, wanted) {
				t.Errorf("%s the layer is %+v, and the link was told %v, want %v", when, states, orders, wanted)
			}
		}
		view := func(peer PeerID) *screenful {
			v := st.slot(peer, "1", KindVideo)
			v.slot.Ready()
			return v
		}
		v := view("bob")
		is("at first", true)
		for range 60 {
			alice.frame(false, 1)
		}
		if states, _ := st.room.RemoteStates([]*Layer{alice.layer}); states[0].BitsPerSecond == told.BitsPerSecond {
			t.Error("the rate is not measured")
		}
		v.slot.Close()
		st.pass(remoteLinger / 2)
		v = view("carol")
		st.pass(2 * remoteLinger)
		if !slices.Equal(orders, []bool{true}) {
			t.Errorf("after a change of viewers the link was told %v", orders)
		}
		v.slot.Close()
		// Longer than a layer without packets is alive.
		st.pass(remoteLinger + layerSilence)
		is("without viewers", true, false)
		view("dave")
		is("with another viewer", true, false, true)
		alice.layer.Close()
		synctest.Wait()
		if !slices.Equal(orders, []bool{true, false, true, false}) {
			t.Errorf("at the end the link was told %v", orders)
		}
	})
}

// TestARemoteSpeakerIsHeard: of more people than the branch has slots for, whoever begins to speak gets one, though nothing of them has crossed.
func TestARemoteSpeakerIsHeard(t *testing.T) {
	onTwoStages(t, func(ctx context.Context, owner, branch *stage) {
		v := branch.slot("viewer", "1", KindAudio)
		v.slot.Ready()
		names := []PeerID{"alice", "bob", "carol"}
		var all []*microphone
		var links []*wireLink
		for _, name := range names {
			m := owner.microphone(name)
			all, links = append(all, m), append(links, link(ctx, branch, m.layer, time.Millisecond, 0))
		}
		const silence, speech = 127, 20
		run := func(speaker PeerID, d time.Duration) {
			for n := range int(d / (20 * time.Millisecond)) {
				for i, m := range all {
					level := uint8(silence)
					if names[i] == speaker {
						level = speech
					}
					m.say(level)
				}
				owner.pass(20 * time.Millisecond)
				if n%12 == 0 {
					tell(links)
				}
			}
		}
		run("", time.Second)
		branch.shows("viewer", "alice")
		for _, speaker := range []PeerID{"bob", "carol", "alice"} {
			run(speaker, 2*time.Second)
			branch.shows("viewer", speaker)
			v.take()
			run(speaker, time.Second)
			if heard := len(v.take()); heard < 45 {
				t.Errorf("%d packets of %s come in a second", heard, speaker)
			}
		}
		before := links[0].crossed()
		run("bob", 4*time.Second)
		if at := links[0].crossed(); at-before > 200 || links[2].crossed() > 400 {
			t.Errorf("%d packets of alice, who is silent, crossed meanwhile", at-before)
		}
	})
}
