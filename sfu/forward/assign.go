package forward

import (
	"cmp"
	"slices"
	"time"
)

// trackKey names one publication of the room.
type trackKey struct {
	peer   PeerID
	source Source
}

func (e Entry) key() trackKey { return trackKey{peer: e.Peer, source: e.Source} }

// candidate is one publication that a subscriber could be shown: somebody
// else's, in a codec that the subscriber has. Candidates come in order of arrival.
type candidate struct {
	key       trackKey
	muted     bool
	speaking  bool
	lastSpoke time.Time // zero: never
}

// viewer is one subscriber as the assignment sees it.
type viewer struct {
	slots   []Entry // of one kind, with what they show at present
	hasView bool
	wants   []Want
	held    func(trackKey) bool // its publisher is expected: keep the place while nobody needs it
}

// The ranks of what may be shown, best first. What has no rank is not shown.
const (
	rankShown  = iota // wanted or, without a view, anything there is
	rankHeld          // was shown, and its publisher is expected back
	rankMuted         // there is no picture, but there will be
	rankHidden        // the page hides it now; a place saves time when it is shown again
)

// assignVideo decides what each video slot shows. What is shown and still among
// the most important stays where it is; the rest fills the free slots in order
// of importance.
func assignVideo(v viewer, candidates []candidate) []Entry {
	known := make(map[trackKey]candidate, len(candidates))
	for _, c := range candidates {
		known[c.key] = c
	}
	type ranked struct {
		key  trackKey
		rank int
	}
	var order []ranked
	seen := make(map[trackKey]bool, len(candidates))
	add := func(key trackKey, rank int) {
		if !seen[key] {
			seen[key] = true
			order = append(order, ranked{key: key, rank: rank})
		}
	}
	rankOf := func(c candidate, hidden bool) int {
		switch {
		case hidden:
			return rankHidden
		case c.muted:
			return rankMuted
		default:
			return rankShown
		}
	}
	if v.hasView {
		for _, w := range v.wants {
			if c, ok := known[trackKey{peer: w.Peer, source: w.Source}]; ok {
				add(c.key, rankOf(c, w.hidden()))
			}
		}
	} else {
		for _, c := range unasked(v.slots, candidates) {
			add(c.key, rankOf(c, false))
		}
	}
	for _, e := range v.slots {
		if _, published := known[e.key()]; !published && e.Peer != "" && v.held(e.key()) {
			add(e.key(), rankHeld)
		}
	}
	slices.SortStableFunc(order, func(a, b ranked) int { return cmp.Compare(a.rank, b.rank) })
	order = order[:min(len(order), len(v.slots))]
	keys := make([]trackKey, len(order))
	for i, o := range order {
		keys[i] = o.key
	}
	return place(v.slots, keys)
}

// unasked orders the candidates for somebody who said nothing: screens first, then
// cameras as sound is chosen: who is shown stays until somebody who speaks needs the place.
func unasked(slots []Entry, candidates []candidate) []candidate {
	var ordered, screens, cameras []candidate // what is muted needs no place before the rest
	known := make(map[trackKey]candidate, len(candidates))
	for _, c := range candidates {
		switch {
		case c.muted:
		case c.key.source == SourceScreen:
			screens = append(screens, c)
		default:
			cameras = append(cameras, c)
			known[c.key] = c
		}
	}
	shown := func(c candidate) bool {
		return slices.ContainsFunc(slots, func(e Entry) bool { return e.Peer != "" && e.key() == c.key })
	}
	slices.SortStableFunc(screens, func(a, b candidate) int { return -compareBool(shown(a), shown(b)) })
	ordered = append(ordered, screens...)
	for _, key := range mostSpoken(max(len(slots)-len(screens), 0), slots, cameras, known) {
		ordered = append(ordered, known[key])
	}
	return append(ordered, candidates...) // Whoever comes twice counts where he comes first.
}

// assignAudio decides what each audio slot carries: everybody while they fit.
// Past that a speaker who has no slot takes that of whoever has been silent
// longest; nobody who speaks is ever replaced, so a slot does not flicker.
func assignAudio(v viewer, candidates []candidate) []Entry {
	var keys []trackKey
	known := make(map[trackKey]candidate, len(candidates))
	for _, c := range candidates {
		known[c.key] = c
		keys = append(keys, c.key)
	}
	if len(keys) > len(v.slots) {
		keys = mostSpoken(len(v.slots), v.slots, candidates, known)
	}
	for _, e := range v.slots {
		if _, published := known[e.key()]; !published && e.Peer != "" && len(keys) < len(v.slots) &&
			!slices.Contains(keys, e.key()) && v.held(e.key()) {
			keys = append(keys, e.key())
		}
	}
	return place(v.slots, keys)
}

// mostSpoken chooses n of the candidates, those that are in slots before others.
func mostSpoken(n int, slots []Entry, candidates []candidate, known map[trackKey]candidate) []trackKey {
	// Better to keep: who speaks, then who is not muted, then who spoke last.
	compare := func(a, b candidate) int {
		return cmp.Or(
			-compareBool(a.speaking, b.speaking),
			compareBool(a.muted, b.muted),
			-a.lastSpoke.Compare(b.lastSpoke),
		)
	}
	var kept, others []candidate
	isKept := make(map[trackKey]bool, len(slots))
	for _, e := range slots {
		if c, ok := known[e.key()]; ok && !isKept[c.key] {
			isKept[c.key] = true
			kept = append(kept, c)
		}
	}
	for _, c := range candidates {
		if !isKept[c.key] {
			others = append(others, c)
		}
	}
	slices.SortStableFunc(others, compare)
	for len(kept) < n && len(others) > 0 {
		kept, others = append(kept, others[0]), others[1:]
	}
	slices.SortStableFunc(kept, compare)
	kept = kept[:min(len(kept), n)]
	for i := len(kept) - 1; i >= 0 && len(others) > 0; i-- {
		if kept[i].speaking || !others[0].speaking {
			break
		}
		kept[i], others = others[0], others[1:]
	}
	keys := make([]trackKey, len(kept))
	for i, c := range kept {
		keys[i] = c.key
	}
	return keys
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// place puts the keys, no more than slots, into the slots: each stays where it
// is when it is there, the others fill what is free in their order.
func place(slots []Entry, keys []trackKey) []Entry {
	table := make([]Entry, len(slots))
	placed := make(map[trackKey]bool, len(keys))
	for i, s := range slots {
		table[i] = Entry{Mid: s.Mid, Kind: s.Kind}
		if s.Peer != "" && slices.Contains(keys, s.key()) && !placed[s.key()] {
			placed[s.key()] = true
			table[i] = s
		}
	}
	free := 0
	for _, key := range keys {
		if placed[key] {
			continue
		}
		for free < len(table) && table[free].Peer != "" {
			free++
		}
		if free == len(table) {
			break
		}
		table[free].Peer, table[free].Source = key.peer, key.source
	}
	return table
}

func (w Want) hidden() bool { return w.Width <= 0 && w.Height <= 0 }
