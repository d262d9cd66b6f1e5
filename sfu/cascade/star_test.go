package cascade

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// member is a media node with its part of a room.
type member struct {
	*half

	place *place
	batch *egress.Batch
}

func (p *places) member(node *place) *member {
	p.t.Helper()
	m := &member{place: node, batch: node.socket.NewBatch()}
	m.half = &half{t: p.t, room: forward.NewRoom(forward.Config{Batchers: []forward.Batcher{m.batch}}, slog.New(slog.DiscardHandler))}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = m.room.Run(ctx) })
	p.t.Cleanup(func() { cancel(); running.Wait() })
	return m
}

// pair is the two ends of a link that is made anew whenever its trunk ends.
type pair struct {
	mu            sync.Mutex // guards the fields below
	owner, branch *Link
	trunks        []string
}

func (k *pair) ends() (owner, branch *Link, trunks int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owner, k.branch, len(k.trunks)
}

// link joins the room of an owner to that of a branch until the test ends.
func link(t *testing.T, owner, branch *member) *pair {
	t.Helper()
	k := &pair{}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			atOwner, err := owner.place.trunks.With(ctx, branch.place.peer)
			if err != nil {
				continue
			}
			atBranch, err := branch.place.trunks.With(ctx, owner.place.peer)
			if err != nil || atBranch.id != atOwner.id {
				continue
			}
			k.once(ctx, t, [2]*member{owner, branch}, [2]*Trunk{atOwner, atBranch})
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return k
}

func (k *pair) once(ctx context.Context, t *testing.T, members [2]*member, trunks [2]*Trunk) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var links [2]*Link
	for i, m := range members {
		links[i] = NewLink(LinkConfig{Room: m.room, Trunk: trunks[i], Batch: m.batch, PassesOn: i == 0, Log: slog.New(slog.DiscardHandler)})
	}
	k.mu.Lock()
	k.owner, k.branch = links[0], links[1]
	k.trunks = append(k.trunks, trunks[0].id)
	k.mu.Unlock()
	var running sync.WaitGroup
	for i, l := range links {
		running.Go(func() {
			defer cancel()
			if err := l.Run(ctx, func(m *control.LinkMessage) error { links[1-i].Take(m); return nil }); err != nil && !errors.Is(err, ErrTrunkEnded) {
				t.Error(err)
			}
		})
	}
	running.Wait()
}

// TestAStarOfThreeNodes: who publishes on one branch is seen on the other one through the owner. Each layer crosses each link once, and none goes
// back where it came from.
func TestAStarOfThreeNodes(t *testing.T) {
	p := newPlaces(t)
	owner, one, two := p.member(p.start("owner", "1", 0)), p.member(p.start("one", "1", 0)), p.member(p.start("two", "1", 0))
	toOne, toTwo := link(t, owner, one), link(t, owner, two)
	alice, bob := one.publish("alice"), owner.publish("bob")
	var viewers []*viewer
	for i := range 10 {
		viewers = append(viewers, two.view(forward.PeerID(strconv.Itoa(i)), "alice", forward.KindVideo, 180))
	}
	viewers = append(viewers, owner.view("20", "alice", forward.KindVideo, 180), one.view("21", "bob", forward.KindVideo, 180))
	hears := two.view("22", "", forward.KindAudio, 0)
	eventually(t, "all are shown what they asked for", func() bool {
		_, heard := hears.shown()
		return heard > 10 && !slices.ContainsFunc(viewers, func(v *viewer) bool { height, packets := v.shown(); return height != 180 || packets < 10 })
	})
	const each = 4 // alice's, and bob's: three layers of the picture, and sound.
	known := func(k *pair, toBranch, toOwner uint32) bool {
		atOwner, atBranch, _ := k.ends()
		out, in := atOwner.Figures()
		farOut, farIn := atBranch.Figures()
		return out.GetKnown() == toBranch && in.GetKnown() == toOwner && farOut.GetKnown() == toOwner && farIn.GetKnown() == toBranch
	}
	eventually(t, "the branches know what they should", func() bool { return known(toOne, each, each) && known(toTwo, 2*each, 0) })
	eventually(t, "the lowest layer and two voices cross", func() bool {
		atOwner, atBranch, _ := toTwo.ends()
		out, _ := atOwner.Figures()
		_, in := atBranch.Figures()
		return out.GetLayers() == in.GetLayers() && out.GetLayers() >= 2 && in.GetPackets() > 100
	})
	for _, k := range []*pair{toOne, toTwo} {
		atOwner, atBranch, trunks := k.ends()
		out, _ := atOwner.Figures()
		_, in := atBranch.Figures()
		if trunks != 1 || in.GetPackets() > out.GetPackets()*5/4+20 {
			t.Errorf("%d packets came and %d were sent, over %d trunks", in.GetPackets(), out.GetPackets(), trunks)
		}
	}
	// The lowest layer crosses for ten viewers, and the sound of both.
	atOwner, _, _ := toTwo.ends()
	out, _ := atOwner.Figures()
	sent := alice.sent[0].Load() + alice.sent[1].Load() + alice.sent[2].Load() + bob.sent[0].Load()
	if out.GetPackets() > uint64(6*sent) {
		t.Errorf("%d packets crossed to the second branch", out.GetPackets())
	}
	one.room.RemovePeer("alice")
	eventually(t, "the second branch forgets alice", func() bool { return known(toTwo, each, 0) })
}

// TestWhichLayersCross: a node that was the owner a moment ago may have links to several nodes, and passes nothing on as a branch.
func TestWhichLayersCross(t *testing.T) {
	m := newPlaces(t).member(newPlaces(t).start("a", "1", 0))
	links := map[bool]*Link{}
	for _, owner := range []bool{true, false} {
		links[owner] = NewLink(LinkConfig{Room: m.room, PassesOn: owner})
	}
	own := m.room.AddLayer(forward.LayerConfig{Peer: "alice"})
	remote := func(via *Link) *forward.Layer {
		return m.room.AddLayer(forward.LayerConfig{Peer: "bob", OnWanted: func(bool) {}, Via: via})
	}
	other := &Link{}
	for owner, l := range links {
		if !l.crosses(own) || l.crosses(remote(l)) || l.crosses(remote(other)) != owner {
			t.Errorf("with an owner (%v): own %v, back %v, of another link %v", owner, l.crosses(own), l.crosses(remote(l)), l.crosses(remote(other)))
		}
	}
}

// TestATrunkIsRenewedUnderMedia, by either side and by both at once: every viewer sees whole pictures again. The keys are fresh each time, so that
// no nonce is used twice although SSRCs begin anew.
func TestATrunkIsRenewedUnderMedia(t *testing.T) {
	p := newPlaces(t)
	var mu sync.Mutex
	keys := map[string]bool{}
	calls := 0
	p.before = func(request *control.TrunkRequest) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		keys[string(request.GetKeys())] = true
	}
	a, b := p.member(p.start("a", "1", 0)), p.member(p.start("b", "1", 0))
	k := link(t, a, b)
	a.publish("alice")
	b.publish("bob")
	views := []*viewer{b.view("1", "alice", forward.KindVideo, 720), a.view("2", "bob", forward.KindVideo, 180), a.view("3", "", forward.KindAudio, 0)}
	sees := func() bool {
		return !slices.ContainsFunc(views, func(v *viewer) bool { _, packets := v.shown(); return packets < 60 || v.whole() != "" && v != views[2] })
	}
	eventually(t, "they see each other", sees)
	for i, wearers := range [][]*member{{a}, {b}, {a, b}} {
		formerA, formerB := joined(t, a.place, b.place)
		_, _, before := k.ends()
		for _, m := range wearers {
			m.place.trunks.mu.Lock()
			for _, n := range m.place.trunks.nodes {
				n.tried = n.tried.Add(-renewPause)
				n.trunk.mu.Lock()
				n.trunk.last = renewAfter
				n.trunk.mu.Unlock()
			}
			m.place.trunks.mu.Unlock()
		}
		eventually(t, "a newer trunk has taken over", func() bool {
			_, _, now := k.ends()
			return formerA.isDone() && formerB.isDone() && now > before
		})
		for _, v := range views {
			v.forget()
		}
		eventually(t, "they see each other after renewal "+strconv.Itoa(i), sees)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(keys) != calls || calls < 4 {
		t.Errorf("%d calls had %d different keys", calls, len(keys))
	}
}

// TestAFullTrunkEnds, before the other node would end its connection.
func TestAFullTrunkEnds(t *testing.T) {
	p := newPlaces(t)
	a, b := p.member(p.start("a", "1", 0)), p.start("b", "1", 0)
	trunk := a.place.with(t, b)
	l := NewLink(LinkConfig{Room: a.room, Trunk: trunk, Batch: a.batch, Log: slog.New(slog.DiscardHandler)})
	layer := a.room.AddLayer(forward.LayerConfig{Peer: "alice", Source: forward.SourceMicrophone, Kind: forward.KindAudio, Codec: opus})
	trunk.mu.Lock()
	trunk.last = mostSSRCs - 1
	trunk.mu.Unlock()
	for _, want := range []error{nil, errTrunkFull} {
		if _, err := trunk.send(l, layer); !errors.Is(err, want) {
			t.Errorf("a layer more: %v, want %v", err, want)
		}
	}
	if !trunk.isDone() || a.place.with(t, b) == trunk {
		t.Error("a full trunk goes on")
	}
}

// speech sends the sound of several people of a half until the test ends. One of them speaks.
func (h *half) speech(speaker *atomic.Value, peers ...forward.PeerID) {
	h.t.Helper()
	const levelID, silence, loud = 1, 127, 20
	var layers []*forward.Layer
	for _, peer := range peers {
		layers = append(layers, h.room.AddLayer(forward.LayerConfig{
			Peer: peer, Source: forward.SourceMicrophone, Kind: forward.KindAudio, Codec: opus, AudioLevelExtensionID: levelID,
		}))
	}
	end := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for n := uint16(0); ; n++ {
			select {
			case <-end:
				return
			case <-tick.C:
			}
			for i, l := range layers {
				header := rtp.Header{Version: 2, PayloadType: opus.PayloadType, SequenceNumber: n, Timestamp: 960 * uint32(n), SSRC: 9}
				level := byte(silence)
				if speaker.Load() == peers[i] {
					level = loud
				}
				if err := header.SetExtension(levelID, []byte{level}); err != nil {
					h.t.Error(err)
				}
				h.push(l, header, []byte(peers[i]))
			}
		}
	})
	h.t.Cleanup(func() { close(end); sending.Wait() })
}

// TestASpeakerIsHeardAcrossTheStar: of more people on one branch than somebody on the other one has slots for, whoever speaks is heard, by way of
// the owner, where nobody listens.
func TestASpeakerIsHeardAcrossTheStar(t *testing.T) {
	p := newPlaces(t)
	owner, one, two := p.member(p.start("owner", "1", 0)), p.member(p.start("one", "1", 0)), p.member(p.start("two", "1", 0))
	link(t, owner, one)
	toTwo := link(t, owner, two)
	var speaker atomic.Value
	speaker.Store(forward.PeerID(""))
	one.speech(&speaker, "alice", "bob", "carol")
	hears := two.view("dave", "", forward.KindAudio, 0)
	for _, peer := range []forward.PeerID{"carol", "alice", "bob"} {
		speaker.Store(peer)
		eventually(t, string(peer)+" is heard", func() bool {
			hears.mu.Lock()
			defer hears.mu.Unlock()
			n := len(hears.packets)
			return n > 0 && string(hears.packets[n-1].Payload) == string(peer)
		})
	}
	// Who speaks no more need not cross for long.
	eventually(t, "one sound crosses", func() bool {
		atOwner, _, _ := toTwo.ends()
		if atOwner == nil {
			return false
		}
		out, _ := atOwner.Figures()
		return out.GetLayers() == 1 && out.GetKnown() == 3
	})
}
