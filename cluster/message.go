package cluster

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// A message is a kind byte, a member's name after its length, and varints. Later versions append fields. A state is a
// list of messages, each after its length, with a hello first.
const (
	kindLoad  byte = 1
	kindLeave byte = 2
	kindHello byte = 3
	// kindDead occurs in states only.
	kindDead byte = 4
)

const maxStateMessages = 8192

// Larger figures in a load report are dropped: they would attract or repel rooms, or hide later reports.
const (
	// maxLoadBitsPerSecond is a petabit.
	maxLoadBitsPerSecond    = 1 << 50
	maxLoadPacketsPerSecond = 1 << 40
	maxLoadSeq              = 1 << 48
)

type message struct {
	kind byte
	// from has only Role, ID and Boot.
	from Node
	load Load
	// age belongs to kindLeave and kindDead. It travels in seconds.
	age time.Duration
}

func (m message) encode() []byte {
	name := memberName(m.from)
	out := append(make([]byte, 0, len(name)+64), m.kind)
	out = binary.AppendUvarint(out, uint64(len(name)))
	out = append(out, name...)
	switch m.kind {
	case kindLeave, kindDead:
		out = binary.AppendUvarint(out, uint64(m.age/time.Second))
	case kindLoad:
		for _, n := range []uint64{
			m.load.Seq, m.load.EgressBitsPerSecond, m.load.EgressPacketsPerSecond,
			m.load.CeilingBitsPerSecond, m.load.CeilingPacketsPerSecond, uint64(m.load.Rooms), uint64(m.load.Peers),
		} {
			out = binary.AppendUvarint(out, n)
		}
		incarnations := m.load.Synced.All()
		out = binary.AppendUvarint(out, uint64(len(incarnations)))
		for _, g := range incarnations {
			out = binary.AppendUvarint(out, uint64(g))
		}
		out = binary.AppendUvarint(out, uint64(m.load.Watchers))
		for _, n := range []uint64{uint64(m.load.Sockets), m.load.FloorBitsPerSecond, m.load.FloorPacketsPerSecond, uint64(m.load.Limited), uint64(m.load.Waiting)} {
			out = binary.AppendUvarint(out, n)
		}
	}
	return out
}

// parseMessage reads one message. Its errors wrap errForeign.
func parseMessage(in []byte) (message, error) {
	if len(in) == 0 || in[0] < kindLoad || in[0] > kindDead {
		return message{}, fmt.Errorf("%w: message of an unknown kind", errForeign)
	}
	m := message{kind: in[0]}
	name, rest, err := takeBytes(in[1:])
	if err != nil {
		return message{}, err
	}
	if m.from, err = parseMemberName(string(name)); err != nil {
		return message{}, err
	}
	switch m.kind {
	case kindLoad:
		m.load, err = takeLoad(rest, m.from)
	case kindLeave, kindDead:
		var seconds uint64
		seconds, _, err = takeNumber(rest)
		m.age = time.Duration(min(seconds, uint64(goneFor/time.Second))) * time.Second
	}
	return m, err
}

func takeLoad(rest []byte, from Node) (l Load, err error) {
	var rooms, peers uint64
	for _, n := range []*uint64{
		&l.Seq, &l.EgressBitsPerSecond, &l.EgressPacketsPerSecond,
		&l.CeilingBitsPerSecond, &l.CeilingPacketsPerSecond, &rooms, &peers,
	} {
		if *n, rest, err = takeNumber(rest); err != nil {
			return Load{}, err
		}
	}
	if rooms > math.MaxUint32 || peers > math.MaxUint32 {
		return Load{}, fmt.Errorf("%w: %d rooms, %d peers", errForeign, rooms, peers)
	}
	l.Rooms, l.Peers = uint32(rooms), uint32(peers)
	if l.Seq > maxLoadSeq || max(l.EgressBitsPerSecond, l.CeilingBitsPerSecond) > maxLoadBitsPerSecond ||
		max(l.EgressPacketsPerSecond, l.CeilingPacketsPerSecond) > maxLoadPacketsPerSecond {
		return Load{}, fmt.Errorf("%w: load report %d of %s says what no node can send: %d of %d bits/s, %d of %d packets/s", errForeign,
			l.Seq, from.ID, l.EgressBitsPerSecond, l.CeilingBitsPerSecond, l.EgressPacketsPerSecond, l.CeilingPacketsPerSecond)
	}
	if l.Synced, rest, err = takeIncarnations(rest); err != nil {
		return Load{}, err
	}
	watchers, rest, err := takeNumber(rest)
	if err != nil {
		return Load{}, err
	}
	l.Watchers = uint32(min(watchers, math.MaxUint32))
	// The oldest versions end here.
	if len(rest) == 0 {
		l.FloorBitsPerSecond, l.FloorPacketsPerSecond = l.EgressBitsPerSecond, l.EgressPacketsPerSecond
		return l, nil
	}
	sockets, rest, err := takeNumber(rest)
	l.Sockets = uint32(min(sockets, math.MaxUint32))
	// Older versions end here.
	if err != nil || len(rest) == 0 {
		l.FloorBitsPerSecond, l.FloorPacketsPerSecond = l.EgressBitsPerSecond, l.EgressPacketsPerSecond
		return l, err
	}
	return takeFloor(rest, l)
}

// takeFloor reads the load at the lowest layers. A figure above the limits is refused, because it would hide that the
// node takes rooms.
func takeFloor(rest []byte, l Load) (Load, error) {
	var limited uint64
	for _, n := range []*uint64{&l.FloorBitsPerSecond, &l.FloorPacketsPerSecond, &limited} {
		var err error
		if *n, rest, err = takeNumber(rest); err != nil {
			return l, err
		}
	}
	l.FloorBitsPerSecond, l.FloorPacketsPerSecond = min(l.FloorBitsPerSecond, maxLoadBitsPerSecond), min(l.FloorPacketsPerSecond, maxLoadPacketsPerSecond)
	l.Limited = uint32(min(limited, math.MaxUint32))
	// Older versions end here.
	if len(rest) == 0 {
		return l, nil
	}
	waiting, _, err := takeNumber(rest)
	l.Waiting = uint32(min(waiting, math.MaxUint32))
	return l, err
}

func takeIncarnations(in []byte) (set pin.Incarnations, rest []byte, err error) {
	count, rest, err := takeNumber(in)
	if err != nil {
		return "", nil, err
	}
	if count > pin.MaxIncarnations {
		return "", nil, fmt.Errorf("%w: %d incarnations", errForeign, count)
	}
	incarnations := make([]pin.Incarnation, count)
	for i := range incarnations {
		var g uint64
		if g, rest, err = takeNumber(rest); err != nil {
			return "", nil, err
		}
		incarnations[i] = pin.Incarnation(g)
	}
	return pin.IncarnationsOf(incarnations), rest, nil
}

func encodeState(messages []message) []byte {
	var out []byte
	for _, m := range messages {
		one := m.encode()
		out = binary.AppendUvarint(out, uint64(len(one)))
		out = append(out, one...)
	}
	return out
}

// parseState reads a state and skips messages that it cannot read; passed is the error of the first of them. All
// errors wrap errForeign.
func parseState(in []byte) (messages []message, passed, err error) {
	for count := 0; len(in) > 0; count++ {
		if count == maxStateMessages {
			return nil, nil, fmt.Errorf("%w: state of more than %d messages", errForeign, maxStateMessages)
		}
		one, rest, err := takeBytes(in)
		if err != nil {
			return nil, nil, err
		}
		m, fault := parseMessage(one)
		if fault == nil {
			messages = append(messages, m)
		} else if passed == nil {
			passed = fault
		}
		in = rest
	}
	return messages, passed, nil
}

func takeNumber(in []byte) (n uint64, rest []byte, err error) {
	n, used := binary.Uvarint(in)
	if used <= 0 {
		return 0, nil, fmt.Errorf("%w: number cut short or too large", errForeign)
	}
	return n, in[used:], nil
}

func takeBytes(in []byte) (taken, rest []byte, err error) {
	n, rest, err := takeNumber(in)
	if err != nil {
		return nil, nil, err
	}
	if n > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("%w: %d bytes announced, %d there", errForeign, n, len(rest))
	}
	return rest[:n], rest[n:], nil
}
