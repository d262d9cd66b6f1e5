// Package headroom is what a room costs a node and whether a node can take it: one
// model, by which signaling nodes place rooms and media nodes accept them. It
// is arithmetic; it knows no node, no room's name and no clock.
//
// A cost is an expectation until the room's traffic is measured, and the measured
// traffic afterwards. The expectation counts what people have on and what fits on a page; it does
// not know how large the pictures on that page are.
package headroom

const (
	// DefaultPeople is the size of a room of which nobody said one. Most calls have two to four people.
	DefaultPeople = 3
	// MaxPeople bounds the size that anybody may claim: beyond it the cost says nothing more, and cannot overflow.
	MaxPeople = 100_000

	// voices and pictures are how many streams a viewer is sent at most. Three voices at once is
	// what people can follow; nine pictures fill a page.
	voices, pictures = 3, 9
	// idleTenth: a node below a tenth of its ceiling is idle.
	idleTenth = 10
)

// audio is one forwarded voice: Opus at 20 ms is 50 packets/s; 32 kbit/s of it with about 20 bytes of overhead a packet.
func audio() Egress { return Egress{BitsPerSecond: 40_000, PacketsPerSecond: 50} }

// video is one picture that has a page to itself: 720p-class, in packets of 1,200 bytes.
func video() Egress { return Egress{BitsPerSecond: 1_500_000, PacketsPerSecond: 160} }

// page is all pictures of one viewer together: they share a page, so each of several comes in a smaller layer.
func page() Egress { return Egress{BitsPerSecond: 2_000_000, PacketsPerSecond: 210} }

// Room is what is known of a room that is to be placed or opened. The zero value is a room of which nothing is known.
type Room struct {
	People      int    // there, or expected
	Cameras     int    // of theirs that are on; screens count as cameras
	Microphones int    // of theirs that are on
	Measured    bool   // Sent is what the room's last owner measured, and the cost
	Sent        Egress // with Measured only
	// Unreserved says that the room is judged by its cost and then counts for nothing until its traffic is measured: for
	// openings of somebody who opens many.
	Unreserved bool
}

// Expect is a room of so many people with everything on; of 0 or fewer, one of which nothing is known.
func Expect(people int) Room {
	people = min(max(people, 0), MaxPeople)
	return Room{People: people, Cameras: people, Microphones: people}
}

// Cost is what the room is expected to send. A room of one is charged as one of two, for
// nobody opens a room to stay alone in it.
func (r Room) Cost() Egress {
	if r.Measured {
		return r.Sent
	}
	if r.People <= 0 {
		r = Expect(DefaultPeople)
	}
	if r.People == 1 {
		r.People, r.Cameras, r.Microphones = 2, 2*r.Cameras, 2*r.Microphones
	}
	people := min(r.People, MaxPeople)
	return toAll(people, r.Cameras, func(shown int) Egress { return video().Times(uint64(min(shown, pictures))).Min(page()) }).
		Plus(toAll(people, r.Microphones, func(heard int) Egress { return audio().Times(uint64(min(heard, voices))) }))
}

// toAll is what people are sent, each of the senders what one fewer of them send.
func toAll(people, senders int, sent func(streams int) Egress) Egress {
	senders = min(max(senders, 0), people)
	return sent(max(senders-1, 0)).Times(uint64(senders)).Plus(sent(senders).Times(uint64(people - senders)))
}

// Idle reports whether a node with the load is so far below its ceiling that it refuses no room: one that is larger than any
// ceiling finds a place on an idle node.
func Idle(load, ceiling Egress) bool {
	return load.BitsPerSecond < ceiling.BitsPerSecond/idleTenth && load.PacketsPerSecond < ceiling.PacketsPerSecond/idleTenth
}

// Takes reports whether a node with the load takes a room of the cost on top of it.
func Takes(load, cost, ceiling Egress) bool {
	return load.Plus(cost).Fits(ceiling) || Idle(load, ceiling)
}
