package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

type flow struct {
	Flow

	last  time.Time
	shown time.Time // in the receiver's slots; zero when unknown
}

// flows lists every stream that should flow among the synthetic people. An absent person or an empty slot has a flow that never flowed.
func (c *crowd) flows() []flow {
	byRoom, onCamera := make(map[string]map[wire.PeerID]*person), make(map[string]map[wire.PeerID]*person)
	shown := make(map[*person]map[peer.StreamID]peer.Stream)
	sounds := make(map[string]map[wire.PeerID]*person)
	for i, p := range c.people {
		var id wire.PeerID
		if id, shown[p] = p.peer.Shown(); id == "" {
			id = wire.PeerID(fmt.Sprintf("nobody yet %d", i))
		}
		if byRoom[p.room] == nil {
			byRoom[p.room], onCamera[p.room], sounds[p.room] = make(map[wire.PeerID]*person), make(map[wire.PeerID]*person), make(map[wire.PeerID]*person)
		}
		byRoom[p.room][id] = p
		if !p.listens {
			sounds[p.room][id] = p
		}
		if p.camera {
			onCamera[p.room][id] = p
		}
	}
	var all []flow
	for room, people := range byRoom {
		for own, receiver := range people {
			all = append(all, receiver.flows(own, sounds[room], wire.SourceMicrophone, audioSlots, shown[receiver])...)
			all = append(all, receiver.flows(own, onCamera[room], wire.SourceCamera, videoSlots, shown[receiver])...)
		}
	}
	return all
}

// flows are those of one source at one receiver.
func (p *person) flows(own wire.PeerID, from map[wire.PeerID]*person, source wire.Source, slots int, shown map[peer.StreamID]peer.Stream) []flow {
	var all []flow
	of := func(name string) Flow { return Flow{p.room, p.name, name, string(source)} }
	senders := len(from)
	if from[own] != nil {
		senders--
	}
	for id, stream := range shown {
		if sender := from[id.Peer]; sender != nil && id.Source == source && id.Peer != own {
			all = append(all, flow{of(sender.name), stream.Last, stream.ShownSince})
		}
	}
	if few := p.voices() > slots && source == wire.SourceMicrophone; !few && len(all) < senders {
		for id, sender := range from {
			id := peer.StreamID{Peer: id, Source: source}
			if _, is := shown[id]; !is && id.Peer != own {
				all = append(all, flow{of(sender.name), p.peer.Stream(id).Last, time.Time{}})
			}
		}
	}
	for i := len(all); i < min(senders, slots); i++ {
		all = append(all, flow{Flow: of(fmt.Sprintf("slot %d", i+1))})
	}
	return all
}

func (c *crowd) receipts(ctx context.Context, since time.Time) []Receipt {
	var all []Receipt
	for _, f := range c.flows() {
		all = append(all, Receipt{f.Flow, f.last.After(since)})
	}
	for _, b := range c.browsers {
		all = append(all, b.receipts(ctx, since, len(c.browsers)-1)...)
	}
	return all
}

func (c *crowd) everybodyReceives(ctx context.Context, since time.Time, limit time.Duration) error {
	return poll(ctx, limit, func() error {
		for _, p := range c.people {
			p.mu.Lock()
			err := p.refused
			p.mu.Unlock()
			if err != nil {
				return fmt.Errorf("%s was refused: %w", p.name, err)
			}
		}
		for _, r := range c.receipts(ctx, since) {
			if !r.Fresh {
				return fmt.Errorf("%s: %s has no fresh %s of %s", r.Room, r.Client, r.Source, r.From)
			}
		}
		return nil
	})
}
