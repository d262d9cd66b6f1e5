// Package headroom is what a room costs a node and whether a node can take it: one
// model, by which signaling nodes place rooms and media nodes accept them. It
// is arithmetic; it knows no node, no room's name and no clock.
//
// A cost is an expectation until the room's traffic is measured, and the measured
// traffic afterwards. The expectation counts what people have on and what fits on a page; it does
// not know how large the pictures on that page are.
package headroom

const (
	// DefaultPeople is how many people a room of unknown size is expected to have. It suits most calls.
	DefaultPeople = 3
	// MaxPeople keeps the arithmetic of costs from overflowing.
	MaxPeople = 100_000

	// A viewer is sent at most this many voices and pictures.
	voices, pictures = 3, 9
	// A node is idle if its load is less than a tenth of its ceiling.
	idleTenth = 10
	// A new room takes at most this share of a ceiling at first.
	mostAtFirst = 0.5
)

// audio is one voice: Opus with packets of 20 ms is 32 kbit/s, and 20 bytes of headers a packet are added.
func audio() Egress { return Egress{BitsPerSecond: 40_000, PacketsPerSecond: 50} }

// video is one 720p picture in packets of 1,200 bytes.
func video() Egress { return Egress{BitsPerSecond: 1_500_000, PacketsPerSecond: 160} }

// lowest is one 180p picture.
func lowest() Egress { return Egress{BitsPerSecond: 150_000, PacketsPerSecond: 30} }

// page is a page of several pictures, which come in smaller layers.
func page() Egress { return Egress{BitsPerSecond: 2_000_000, PacketsPerSecond: 210} }

// Room is how many people a room has and what they send.
type Room struct {
	// People are those present, or those expected if they are more.
	People int
	// Cameras counts shared screens, too.
	Cameras     int
	Microphones int
	// Measured says that the last owner has measured the room's traffic.
	Measured bool
	// Sent is the measured traffic. It is used if Measured is set.
	Sent Egress
	// Unreserved says that the room counts nothing until it is measured.
	Unreserved bool
	// Running says that people are in the room, so that headroom for its Floor is better than none.
	Running bool
}

// Expect returns a room in which all people have their camera and microphone on.
func Expect(people int) Room {
	people = min(max(people, 0), MaxPeople)
	return Room{People: people, Cameras: people, Microphones: people}
}

// AtLeast returns the room with this many people. The people who are added have everything on.
func (r Room) AtLeast(people int) Room {
	if missing := min(people, MaxPeople) - r.People; missing > 0 {
		r.People, r.Cameras, r.Microphones = r.People+missing, r.Cameras+missing, r.Microphones+missing
	}
	return r
}

// Cost returns what a node sends for the room. Somebody who is alone is charged as two people, because a second
// one is expected.
func (r Room) Cost() Egress {
	if r.Measured {
		return r.Sent
	}
	return r.sum(func(shown int) Egress { return video().Times(uint64(min(shown, pictures))).Min(page()) })
}

// First returns what a node with this ceiling is expected to send for the room at first, where rooms that outgrow a node spread over several.
// A new room that costs over half of the ceiling is charged as half of one: its people come one by one, and others take the rest of them. A
// room that ran is charged whole, since its people come at once.
func (r Room) First(ceiling Egress) Egress {
	if r.Measured || r.Running {
		return r.Cost()
	}
	return First(r.Cost(), ceiling)
}

// First is Room.First of a new room's cost.
func First(cost, ceiling Egress) Egress {
	if share := cost.Share(ceiling); share > mostAtFirst {
		return cost.Part(mostAtFirst / share)
	}
	return cost
}

// Floor returns the cost if everybody gets only the lowest layers.
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

// toAll adds up what all people are sent. People who send are not sent their own stream.
func toAll(people, senders int, sent func(streams int) Egress) Egress {
	senders = min(max(senders, 0), people)
	return sent(max(senders-1, 0)).Times(uint64(senders)).Plus(sent(senders).Times(uint64(people - senders)))
}

// Idle reports whether a node is nearly idle. Such a node refuses no room, however large.
func Idle(load, ceiling Egress) bool {
	return load.BitsPerSecond < ceiling.BitsPerSecond/idleTenth && load.PacketsPerSecond < ceiling.PacketsPerSecond/idleTenth
}

// Takes reports whether a node with this load and ceiling takes a room of this cost.
func Takes(load, cost, ceiling Egress) bool {
	return load.Plus(cost).Fits(ceiling) || Idle(load, ceiling)
}
