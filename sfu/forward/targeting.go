package forward

import (
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
)

const (
	noTarget = -1
	// A power of two.
	keptVerdicts = 256
)

// targeting forwards one decode target, which changes between temporal units.
type targeting struct {
	structure    *descriptor.Structure
	target, goal int // noTarget: none
	cut          bool
	since        time.Time
	timestamp    uint32

	// intact has a bit for each target that lost nothing which later frames need.
	intact   uint32
	verdicts [keptVerdicts]verdict // by frame number
}

type verdict struct {
	number uint16
	kind   uint8
}

const (
	verdictNone = iota
	verdictLeftOut
	verdictForwarded
	verdictHighest // ends its temporal unit
)

func (t *targeting) begin() { *t = targeting{target: noTarget, goal: noTarget} }

// ahead: no later packet came before.
func (t *targeting) drops(p *Packet, ahead bool, spatial, temporal uint8) bool {
	f := &p.frame
	if kind := t.verdict(f.Number); kind != verdictNone {
		return kind == verdictLeftOut
	}
	if !f.Known || f.Structure != t.structure && !ahead {
		return true
	}
	if f.Structure != t.structure {
		t.structure, t.target, t.goal, t.intact = f.Structure, noTarget, noTarget, 0
	} else if ahead && p.header.Timestamp == t.timestamp {
		ahead = false
	}
	if ahead {
		t.timestamp = p.header.Timestamp
		t.turn(f, spatial, temporal, p.arrived)
	}
	return t.judge(f) == verdictLeftOut
}

// f begins a temporal unit.
func (t *targeting) turn(f *descriptor.Frame, spatial, temporal uint8, now time.Time) {
	t.goal = goalOf(t.structure, f.Active, spatial, temporal)
	switch {
	case t.goal == t.target:
	case t.goal == noTarget, f.Keyframe, has(t.intact, t.goal), has(f.Switch, t.goal) && t.decodable(f):
		t.target = t.goal
	case t.cut && t.target != noTarget && t.structure.Target(t.goal).Spatial < t.structure.Target(t.target).Spatial:
		t.target = noTarget
	}
	switch {
	case t.goal == t.target:
		t.cut, t.since = false, time.Time{}
	case t.since.IsZero():
		t.since = now
	}
}

// goalOf is the highest target up to what is wanted, else the lowest.
func goalOf(s *descriptor.Structure, active uint32, spatial, temporal uint8) int {
	goal, lowest := noTarget, noTarget
	for d := range descriptor.Targets(active) {
		l := s.Target(d)
		if lowest == noTarget || higher(s.Target(lowest), l) {
			lowest = d
		}
		if l.Spatial <= spatial && l.Temporal <= temporal && (goal == noTarget || higher(l, s.Target(goal))) {
			goal = d
		}
	}
	if goal == noTarget {
		return lowest
	}
	return goal
}

func (t *targeting) judge(f *descriptor.Frame) uint8 {
	kind := uint8(verdictLeftOut)
	switch {
	case t.target == noTarget || !has(f.Present, t.target):
		t.intact &^= f.Present &^ f.Discardable
	case f.Spatial == t.structure.Target(t.target).Spatial:
		kind = verdictHighest
		t.intact |= f.Switch
	default:
		kind = verdictForwarded
		t.intact |= f.Switch
	}
	t.verdicts[f.Number%keptVerdicts] = verdict{f.Number, kind}
	return kind
}

func (t *targeting) verdict(number uint16) uint8 {
	if v := t.verdicts[number%keptVerdicts]; v.number == number {
		return v.kind
	}
	return verdictNone
}

func (t *targeting) decodable(f *descriptor.Frame) bool {
	for _, back := range f.References() {
		if t.verdict(f.Number-back) == verdictLeftOut {
			return false
		}
	}
	return true
}

// ends reports whether a packet is the receiver's last of its temporal unit.
func (t *targeting) ends(p *Packet) bool {
	return t != nil && p.described && p.frame.Last && t.verdict(p.frame.Number) == verdictHighest
}

func (t *targeting) reaches(c *layerChoice) bool {
	if t.structure == nil {
		return false
	}
	goal := goalOf(t.structure, c.layer.described.active, c.spatial, c.upTo)
	return goal == t.target || goal != noTarget && has(t.intact, goal)
}

// A keyframe is needed at once for another size, else after risePatience.
func (t *targeting) waits(now time.Time) bool {
	if t == nil || t.goal == t.target || t.goal == noTarget {
		return false
	}
	return t.target == noTarget || t.structure.Target(t.goal).Spatial != t.structure.Target(t.target).Spatial || now.Sub(t.since) >= risePatience
}

func has(mask uint32, target int) bool { return mask>>target&1 == 1 }
