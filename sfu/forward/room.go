package forward

import (
	"context"
	"log/slog"
	"time"
)

// Batcher gathers what is written between Begin and End into few system calls.
// egress.Conn is one.
type Batcher interface {
	Begin()
	End()
}

// Config is what one room needs to know.
type Config struct {
	// OnSlots is told a subscriber's whole slot table at every change, sorted
	// by mid as the slots were added. OnSpeakers is told who speaks, loudest
	// first, at most SpeakersPerSecond times a second and only on a change. Both
	// are called on the room's loop: they must not block and must not call the room.
	OnSlots    func(PeerID, []Entry)
	OnSpeakers func([]Speaker)

	Batcher Batcher // nil: every packet is written by itself

	QueuePackets   int           // packets waiting for the loop; default 1024
	MinPLIInterval time.Duration // between keyframe requests to one layer; default 320 ms
	HoldTable      time.Duration // how long a slot waits for a publisher named by SetTable; default 15 s
}

// Room is the media plane of one room.
type Room struct {
	cfg Config
	log *slog.Logger
}

// NewRoom makes a room; Run makes it work.
func NewRoom(cfg Config, log *slog.Logger) *Room { return &Room{cfg: cfg, log: log} }

// Run forwards until ctx ends, then releases everything it holds. It returns nil.
func (r *Room) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// GetPacket takes an empty packet from the room's pool.
func (r *Room) GetPacket() *Packet { return &Packet{} }

// AddLayer adds one encoding of a publisher. A layer of the same peer, source
// and RID replaces an older one, slots included.
func (r *Room) AddLayer(cfg LayerConfig) *Layer { return &Layer{room: r, cfg: cfg} }

// AddSlot adds one receiving m-line of a subscriber. A slot of the same peer
// and mid replaces an older one and shows what that one showed.
func (r *Room) AddSlot(cfg SlotConfig) *Slot { return &Slot{room: r, cfg: cfg} }

// SetView says what a subscriber's page shows, most important first. Until the
// first call the subscriber is shown everyone, first come, at the lowest layer.
func (r *Room) SetView(peer PeerID, wants []Want) {}

// SetTable says what the subscriber's slots show at present: call it when the
// client's connection was made elsewhere. The slots keep showing that, also
// before those publishers have arrived (for Config.HoldTable, and while nobody
// else needs the slot).
func (r *Room) SetTable(peer PeerID, table []Entry) {}

// SetMuted says that a peer muted or unmuted one of its sources. A muted
// microphone never speaks; a muted source yields its slot when others need it.
func (r *Room) SetMuted(peer PeerID, source Source, muted bool) {}

// RemovePeer forgets a peer that left: its layers, its slots, its view, and
// every place that was held for it.
func (r *Room) RemovePeer(peer PeerID) {}

// Table is what a subscriber's slots show now.
func (r *Room) Table(peer PeerID) []Entry { return nil }

// Stats reads the room's counters.
func (r *Room) Stats() Stats { return Stats{} }
