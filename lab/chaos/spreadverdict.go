package chaos

import (
	"fmt"
	"slices"

	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// OnePlace looks at which nodes each person of the room on several nodes is, in the end.
func OnePlace(w *World) Verdict {
	v := verdict("one place a person", "in a room on several nodes each person is at exactly one of them")
	if w.Spread == nil {
		return *v
	}
	places := make(map[string][]string)
	for _, h := range w.After.holders(w.Spread.Room) {
		for _, p := range h.Peers {
			node := p.Node
			if node == "" {
				node = h.Node
			}
			places[p.Identity] = append(places[p.Identity], node)
		}
	}
	for _, who := range w.People[w.Spread.Room] {
		if at := places[who]; len(at) != 1 {
			v.broken("%s is at %v", who, at)
		}
	}
	if len(w.People[w.Spread.Room]) == 0 {
		return v.unchecked("nobody is in the room")
	}
	return *v
}

// OthersStay is about people of the room on several nodes who were at unhurt nodes.
func OthersStay(w *World) Verdict {
	v := verdict("others stay", fmt.Sprintf("in a room on several nodes, who was at an unhurt one makes no new connection, and is without sound of others there for no more than %s", longestPause))
	others, heard := 0, false
	for _, client := range w.Clients {
		if !w.Spread.is(client.Room) || w.struckClient(client) {
			continue
		}
		others++
		heard = heard || client.LocalGap > 0
		if slices.ContainsFunc(client.Moments, func(m peer.Moment) bool { return m.Step == peer.StepOffer && m.At.After(w.first()) }) {
			v.broken("%s at %s made a new connection", client.Name, w.Spread.At[client.Name])
		}
		if client.LocalGap > longestPause {
			v.broken("%s had no sound of somebody at %s, its own node, for %s", client.Name, w.Spread.At[client.Name], client.LocalGap)
		}
	}
	if others == 0 || !heard {
		return v.unchecked("nobody heard anybody at an unhurt node of the room")
	}
	return *v
}

// RostersEqual asks each client, not the store.
func RostersEqual(w *World) Verdict {
	v := verdict("rosters equal", "after the fault each client of a room on several nodes was told of all others there, whatever node it is at")
	for _, client := range w.Clients {
		if want := len(w.People[client.Room]) - 1; w.Spread.is(client.Room) && client.Others != want {
			v.broken("%s knows of %d others, want %d", client.Name, client.Others, want)
		}
	}
	if len(w.Clients) == 0 {
		return v.unchecked("nobody was asked")
	}
	return *v
}

// crossMargin allows for looks that are not at one moment, and for packets that were asked for again.
const crossMargin = 1.3

// LayersCrossOnce compares what crosses each link with what the publishers behind it send.
func LayersCrossOnce(w *World) Verdict {
	v := verdict("layers cross once", "no link between two nodes of a room carries a layer more than once, for however many people")
	for _, c := range w.Spread.Crossing {
		if c.Crossed == 0 && c.Sent > 0 && c.People > 0 {
			v.broken("nothing crosses from %s to %s, which has %d people", c.From, c.To, c.People)
		}
		if c.Layers > c.Most {
			v.broken("%d layers cross from %s to %s, and %d are published there", c.Layers, c.From, c.To, c.Most)
		}
		if float64(c.Crossed) > crossMargin*float64(c.Sent) {
			v.broken("%d packets crossed from %s to %s while the publishers sent %d", c.Crossed, c.From, c.To, c.Sent)
		}
	}
	if len(w.Spread.Crossing) == 0 {
		return v.unchecked("the room had no link in the end")
	}
	return *v
}

// mostAsked is what two nodes ask for in a second, each once in 320 ms: both have a publisher who moves.
const mostAsked = 8

// FewKeyframes counts at the publishers.
func FewKeyframes(w *World) Verdict {
	v := verdict("few keyframes", fmt.Sprintf("a publisher of a room on several nodes is asked for at most %d keyframes of a layer in a second", mostAsked))
	for _, client := range w.Clients {
		if client.KeyframesAsked > mostAsked {
			v.broken("%s was asked %d times", client.Name, client.KeyframesAsked)
		}
	}
	if len(w.Clients) == 0 {
		return v.unchecked("nobody was asked")
	}
	return *v
}
