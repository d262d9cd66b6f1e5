package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/lab/portrait"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const tokenMargin = 30 * time.Minute

type person struct {
	room      string
	name      string // that people see
	publishes bool
	peer      *peer.Peer
	firstNode ring.NodeID // at the start of the window

	refused atomic.Pointer[wire.Code] // for good; else nil
}

// Publishers come first.
func newPerson(o Options, stack *peer.Stack, room, index int) (*person, error) {
	p := &person{room: o.roomName(room), name: portrait.PersonName(index), publishes: index < o.publishers()}
	// Another run's people of the same room are others.
	identity := fmt.Sprintf("%s-%s", strings.ToLower(strings.ReplaceAll(p.name, " ", "-")), seededName(o.Seed, room))
	grant := access.Everything(identity, ring.RoomID(p.room))
	grant.Name, grant.CanPublish = p.name, p.publishes
	token, err := o.Keys.Mint("", grant, o.Duration+maxJoinPhase+tokenMargin)
	if err != nil {
		return nil, err
	}
	audio, video := o.slots()
	p.peer, err = peer.New(peer.Options{
		URL: o.URL, Token: token, Room: p.room, AudioSlots: audio, VideoSlots: video, ListenOnly: !p.publishes,
		Seed: o.Seed<<20 + uint64(room)<<10 + uint64(index) + 1, Face: index, Stack: stack,
	}, slog.New(slog.DiscardHandler)) // the counts show what goes wrong
	return p, err
}

func (o Options) roomName(room int) string { return cmp.Or(o.Room, seededName(o.Seed, room)) }

// The name decides the ring's choice of a node, so that a seed repeats it.
func seededName(seed uint64, room int) string { return fmt.Sprintf("load-%x-%d", seed, room+1) }

func (p *person) run(ctx context.Context) {
	err := p.peer.Run(ctx)
	if refused := new(peer.RefusedError); errors.As(err, &refused) {
		p.refused.Store(&refused.Code)
	}
}

type life struct {
	*person

	stats peer.Stats
	gone  *wire.Code
}

func (l *Load) lives() []life {
	lives := make([]life, 0, len(l.people))
	for _, p := range l.people {
		lives = append(lives, life{person: p, stats: p.peer.Stats(), gone: p.refused.Load()})
	}
	return lives
}

type totals struct {
	joined, gone, restarts, refusals, socketsLost int
	sent, received                                peer.Traffic
	loss                                          peer.Loss
}

func (l *Load) totals() totals {
	var sum totals
	for _, p := range l.people {
		t := p.peer.Totals()
		if t.Joined {
			sum.joined++
		} else if p.refused.Load() != nil {
			sum.gone++
		}
		for _, n := range t.Codes {
			sum.refusals += n
		}
		sum.restarts += len(t.Restarts)
		sum.socketsLost += t.SocketsLost
		sum.sent.Add(t.Sent)
		sum.received.Add(t.Received)
		sum.loss.Add(t.Loss)
	}
	return sum
}
