// Package headroom is what a room costs a node and whether a node can take it: one
// model, by which signaling nodes place rooms and media nodes accept them. It
// is arithmetic; it knows no node, no room's name and no clock.
//
// A cost is an expectation until the room's traffic is measured, and the measured
// traffic afterwards. The expectation counts what people have on and what fits on a page; it does
// not know how large the pictures on that page are.
package headroom

const (
	// DefaultPeople suits most calls.
	DefaultPeople = 3
	// MaxPeople keeps costs from overflowing.
	MaxPeople = 100_000

	voices, pictures = 3, 9 // one viewer's at most
	// Below a tenth of its ceiling a node is idle.
	idleTenth = 10
)

// Opus at 20 ms: 32 kbit/s and 20 bytes a packet.
func audio() Egress { return Egress{BitsPerSecond: 40_000, PacketsPerSecond: 50} }

// One 720p picture, 1,200 bytes a packet.
func video() Egress { return Egress{BitsPerSecond: 1_500_000, PacketsPerSecond: 160} }

// One 180p picture.
func lowest() Egress { return Egress{BitsPerSecond: 150_000, PacketsPerSecond: 30} }

// Several pictures come in smaller layers.
func page() Egress { return Egress{BitsPerSecond: 2_000_000, PacketsPerSecond: 210} }

// Room is a room's people and traffic.
type Room struct {
	People      int // present or expected
	Cameras     int // screens count
	Microphones int
	Measured    bool   // by the last owner
	Sent        Egress // if Measured
	// Unreserved rooms count nothing until measured.
	Unreserved bool
	// Running: headroom for Floor will do.
	Running bool
}

// Expect has everything on.
func Expect(people int) Room {
	people = min(max(people, 0), MaxPeople)
	return Room{People: people, Cameras: people, Microphones: people}
}

// AtLeast adds missing people with everything on.
func (r Room) AtLeast(people int) Room {
	if missing := min(people, MaxPeople) - r.People; missing > 0 {
		r.People, r.Cameras, r.Microphones = r.People+missing, r.Cameras+missing, r.Microphones+missing
	}
	return r
}

// Cost is what the room sends. One alone is charged as two.
func (r Room) Cost() Egress {
	if r.Measured {
		return r.Sent
	}
	return r.sum(func(shown int) Egress { return video().Times(uint64(min(shown, pictures))).Min(page()) })
}

// Floor is Cost with only the lowest layers.
func (r Room) Floor() Egress {
	return r.sum(func(shown int) Egress { return lowest().Times(uint64(min(shown, pictures))) }).Min(r.Cost())
}

func (r Room) sum(shows func(pictures int) Egress) Egress {
	if r.People <= 0 {
		r = Expect(DefaultPeople)
	}
	if r.People == 1 {
		r.People, r.Cameras, r.Microphones = 2, 2*r.Cameras, 2*r.Microphones
	}
	people := min(r.People, MaxPeople)
	return toAll(people, r.Cameras, shows).
		Plus(toAll(people, r.Microphones, func(heard int) Egress { return audio().Times(uint64(min(heard, voices))) }))
}

// Nobody is sent their own stream.
func toAll(people, senders int, sent func(streams int) Egress) Egress {
	senders = min(max(senders, 0), people)
	return sent(max(senders-1, 0)).Times(uint64(senders)).Plus(sent(senders).Times(uint64(people - senders)))
}

// Idle nodes refuse no room, however large.
func Idle(load, ceiling Egress) bool {
	return load.BitsPerSecond < ceiling.BitsPerSecond/idleTenth && load.PacketsPerSecond < ceiling.PacketsPerSecond/idleTenth
}

// Takes reports whether a node takes a room.
func Takes(load, cost, ceiling Egress) bool {
	return load.Plus(cost).Fits(ceiling) || Idle(load, ceiling)
}
