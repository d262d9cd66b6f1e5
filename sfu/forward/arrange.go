package forward

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

func (r *Room) arrange(now time.Time) {
	if r.tablesChanged || r.speakersChanged {
		r.rank()
	}
	if r.tablesChanged {
		r.scarce = false
	}
	r.looks++
	r.apart = false
	for _, sub := range r.subscribers {
		r.arrangeFor(sub, now)
		r.apart = r.apart || sub.apart
	}
	r.tablesChanged, r.speakersChanged, r.layersChanged = false, false, false
}

func (r *Room) arrangeFor(sub *subscriber, now time.Time) {
	defer r.surviveFor(sub)
	anew := r.tablesChanged || sub.changed
	r.assignment.moved = r.assignment.moved[:0]
	pair := sub.apart && r.speakersChanged
	for _, kind := range []Kind{KindAudio, KindVideo} {
		if !r.frozen && (anew || r.speakersChanged && r.unseated(sub, kind)) {
			r.assign(sub, kind, now)
			pair = true
		}
	}
	if pair {
		r.assignment.pair(r, sub)
	}
	// Only a budget ties slots together.
	all := anew || r.layersChanged || sub.budget > 0
	if anew || r.layersChanged || sub.moved {
		r.chooseTargets(sub, now, all)
	}
	var told bool
	switch {
	case anew || sub.moved && all:
		told = r.tell(sub)
	case sub.moved:
		told = r.tellMoved(sub)
	}
	if told && r.cfg.OnSlots != nil {
		r.cfg.OnSlots(sub.peer)
	}
	sub.changed, sub.moved = false, false
}

// Only an unseated speaker moves slots.
func (r *Room) unseated(sub *subscriber, kind Kind) bool {
	group, k := sub.group(kind), r.ranking(kind)
	return group.scarce && slices.ContainsFunc(k.spoken[:k.speaking], func(p *publication) bool {
		return p.key.peer != sub.peer && !slices.ContainsFunc(group.slots, func(s *Slot) bool { return r.shown(s) == p })
	})
}

func (r *Room) assign(sub *subscriber, kind Kind, now time.Time) {
	group := sub.group(kind)
	if len(group.slots) == 0 {
		return
	}
	a := &r.assignment
	a.room, a.sub, a.slots, a.ranking, a.now = r, sub, group.slots, r.ranking(kind), now
	// With a view, the page decides who is shown.
	group.scarce = a.assign(kind) && (kind == KindAudio || !sub.hasView)
	r.scarce = r.scarce || group.scarce
}

func (r *Room) tell(sub *subscriber) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := r.tables[sub.peer]
	for i, s := range sub.slots {
		s.position = i
	}
	if slices.EqualFunc(table, sub.slots, func(e Entry, s *Slot) bool { return e == s.told() }) {
		return false
	}
	table = table[:0]
	for _, s := range sub.slots {
		table = append(table, s.told())
	}
	r.tables[sub.peer] = table
	return true
}

func (r *Room) tellMoved(sub *subscriber) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.assignment.moved {
		r.tables[sub.peer][s.position] = s.told()
	}
	return true
}

func (r *Room) chooseTargets(sub *subscriber, now time.Time, all bool) {
	slots := sub.slots
	if !all {
		slots = r.assignment.moved
	}
	r.demands = r.demands[:0]
	audio := uint64(0)
	for _, s := range slots {
		if sub.changed || s.moved {
			s.wanted = sub.wanted(s.entry)
		}
		s.moved = false
		d, ok := r.demand(s, now)
		if !ok {
			s.paused = false
			s.aim(nil, now)
			continue
		}
		if s.cfg.Kind == KindAudio {
			audio += d.layers[d.top].bits
			s.aim(d.layers[d.top].layer, now)
			continue
		}
		r.demands = append(r.demands, d)
	}
	if all {
		sub.short = 0
	}
	if sub.budget > 0 {
		sub.short = apportion(r.demands, sub.budget, audio, now)
	}
	for i := range r.demands {
		d := &r.demands[i]
		d.cut = d.chosen < min(d.held, d.top)
	}
	if r.restrain(r.demands) {
		sub.short = 0
	}
	if r.adding != nil {
		r.adding.Sound += audio
		r.adding.Aimed += audio
	}
	for i := range r.demands {
		r.aim(sub, &r.demands[i], now)
	}
}

func (r *Room) aim(sub *subscriber, d *demand, now time.Time) {
	paused := d.chosen < 0
	sub.moved = sub.moved || paused != d.slot.paused
	d.slot.paused, d.slot.restrained = paused, d.restrained
	var target *Layer
	if !paused {
		rung := &d.layers[d.chosen]
		target = rung.layer
		d.slot.limit(rung, d.cut, now)
	}
	if d.cut {
		d.slot.cut(target, now)
	} else {
		d.slot.aim(target, now)
	}
}

// false: nothing to show.
func (r *Room) demand(s *Slot, now time.Time) (demand, bool) {
	p := r.shown(s)
	if p == nil || len(p.layers) == 0 || s.wanted.hidden {
		return demand{}, false
	}
	d := demand{slot: s, rank: s.wanted.rank, screen: s.entry.Source == SourceScreen, held: -1}
	d.layers = reach(p.ladder(r.looks, now), s.wanted.height)
	d.top = len(d.layers) - 1
	d.chosen = d.top
	if s.target != nil && s.target.cfg.key() == s.entry.key() {
		for i, c := range d.layers {
			if c.layer == s.target && (d.held < 0 || !s.above(&c)) {
				d.held = i
			}
		}
		if d.held < 0 {
			d.held = d.top
		}
	}
	return d, true
}

// wish is an entry's rank in the page's order, and the wanted height.
type wish struct {
	rank, height int
	hidden       bool
}

func (r *Room) rank() {
	for _, k := range []*ranking{&r.sounds, &r.pictures} {
		k.arrived, k.shared, k.spoken, k.speaking = k.arrived[:0], k.shared[:0], k.spoken[:0], 0
	}
	for i, p := range r.publications {
		p.arrival = i
		if len(p.layers) == 0 {
			continue
		}
		p.speaking, p.lastSpoke = false, time.Time{}
		if v := r.speakers.voices[p.key.peer]; v != nil {
			p.speaking, p.lastSpoke = v.speaking, v.lastSpoke
		}
		r.ranking(p.kind).add(p)
	}
	for _, k := range []*ranking{&r.sounds, &r.pictures} {
		slices.SortFunc(k.spoken, func(a, b *publication) int {
			return cmp.Or(comparePlaces(a, b), cmp.Compare(a.arrival, b.arrival))
		})
	}
}

func (r *Room) ranking(kind Kind) *ranking {
	if kind == KindAudio {
		return &r.sounds
	}
	return &r.pictures
}

func (r *Room) mark() uint64 {
	r.lastMark++
	return r.lastMark
}

func (r *Room) shown(s *Slot) *publication {
	if s.entry.Peer == "" {
		return nil
	}
	if p := s.source; p == nil || p.gone {
		s.source = r.sources[s.entry.key()]
	}
	return s.source
}

// The publisher of a picture that somebody lacks may have another codec.
func (r *Room) compareCodecs(now time.Time) {
	list := r.pictures.arrived
	for range min(lacksPerLook, len(list)) {
		r.compared++
		p := list[r.compared%len(list)]
		lacking := r.whoLacks(p)
		p.lacked = lacking != nil
		if p.lacked && r.cfg.OnStarved != nil && now.Sub(p.lackTold) >= starvedEvery {
			p.lackTold = now
			r.cfg.OnStarved(Starved{Subscriber: lacking.peer, Publisher: p.key.peer, Source: p.key.source, Heard: true, LacksCodec: true})
		}
	}
	r.tellLacks()
}

func (r *Room) whoLacks(p *publication) *subscriber {
	for _, sub := range r.subscribers {
		if sub.doesLack(p) {
			return sub
		}
	}
	return nil
}

func (r *Room) tellLacks() {
	r.lacked = r.lacked[:0]
	for _, p := range r.pictures.arrived {
		if p.lacked {
			r.lacked = append(r.lacked, p)
		}
	}
	for _, sub := range r.subscribers {
		var lacks []Lack
		for _, p := range r.lacked {
			if sub.doesLack(p) && len(lacks) < maxLacks {
				lacks = append(lacks, Lack{p.key.peer, p.key.source, strings.TrimPrefix(p.layers[0].cfg.Codec.MimeType, "video/")})
			}
		}
		if slices.Equal(lacks, sub.lacks) {
			continue
		}
		sub.lacks = lacks
		r.mu.Lock()
		r.lacks[sub.peer] = lacks
		r.mu.Unlock()
		if r.cfg.OnSlots != nil {
			r.cfg.OnSlots(sub.peer)
		}
	}
}

const (
	lacksPerLook = 8
	maxLacks     = 64
)

// Lack is a picture whose codec a subscriber lacks.
type Lack struct {
	Peer   PeerID
	Source Source
	Codec  string // "H264"
}

// restrain removes what is above the room's level.
func (r *Room) restrain(demands []demand) (held bool) {
	level := r.Level()
	if level == AllLevels && r.adding == nil {
		return false
	}
	slices.SortStableFunc(demands, screensFirst)
	for i := range demands {
		d := &demands[i]
		least := min(Level(i)+1, LowestLevels)
		if d.screen {
			least = 1
		}
		allowed := -1
		for rung := range d.chosen + 1 {
			at := least
			if rung > 0 {
				at = max(at, d.layers[rung].level)
			}
			if at <= level {
				allowed = rung
			}
			if r.adding != nil && d.measured(rung) {
				r.adding.Steps[at] += d.cost(rung)
			}
		}
		for rung := 0; r.adding != nil && rung <= allowed; rung++ {
			if d.measured(rung) {
				r.adding.Aimed += d.cost(rung)
			} else {
				r.adding.Guessed += d.cost(rung)
			}
		}
		d.restrained = allowed < d.chosen
		held = held || d.restrained
		d.chosen = allowed
	}
	return held
}

func (r *Room) addUp(look func()) {
	var sum Demand
	r.adding = &sum
	defer func() {
		r.adding = nil
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wants = sum
	}()
	look()
}

func (r *Room) rests(s *Slot) bool {
	v := r.speakers.voices[s.entry.Peer]
	return s.moved || s.entry.Source != SourceScreenAudio && (v == nil || !v.speaking)
}

func (r *Room) feed(now time.Time) {
	for _, sub := range r.subscribers {
		for _, s := range sub.slots {
			if !r.starves(sub, s) {
				s.starvation = starvation{}
				continue
			}
			if s.starvation.since.IsZero() {
				s.starvation.since = now
			}
			if now.Sub(s.starvation.since) >= starvedAfter && now.Sub(s.starvation.told) >= starvedEvery {
				r.starved(sub, s, now)
			}
		}
	}
}

func (r *Room) starves(sub *subscriber, s *Slot) bool {
	if s.cfg.Kind != KindVideo || !s.ready || s.entry.Peer == "" || s.paused || s.current != nil {
		return false
	}
	p := r.shown(s)
	return !sub.wanted(s.entry).hidden && (p == nil || !p.muted)
}

func (r *Room) starved(sub *subscriber, s *Slot, now time.Time) {
	told := Starved{Subscriber: sub.peer, Mid: s.cfg.Mid, Publisher: s.entry.Peer, Source: s.entry.Source}
	if s.target != nil && s.target.alive(now) {
		told.Heard = true
		s.target.shunnedUntil = now.Add(shunned)
		r.layersChanged = true
	}
	if s.starvation.told.IsZero() {
		r.log.Warn("a slot has no picture", "subscriber", string(told.Subscriber), "mid", told.Mid, "publisher", string(told.Publisher),
			"source", string(told.Source), "waits_for", r.waits(sub, s, now))
	}
	s.starvation.told = now
	if r.cfg.OnStarved != nil {
		r.cfg.OnStarved(told)
	}
}
