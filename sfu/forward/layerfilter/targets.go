package layerfilter

import (
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
)

// AllSpatial is no limit of spatial layers.
const AllSpatial = 0xFF

const (
	noTarget = -1
	// keptVerdicts is how many frames keep their verdict for late packets; a power of two.
	keptVerdicts = 256
)

// Targets selects frames by their dependency descriptors: it forwards one decode target, which changes between temporal units only. Make it
// with NewTargets.
type Targets struct {
	Structure *descriptor.Structure
	// Target is forwarded now, and Goal is what should be; negative if there is none.
	Target, Goal int
	// Cut is set by the caller if the path does not carry Target. Nothing is forwarded then until Goal can begin.
	Cut bool
	// since is when Goal began to differ from Target.
	since time.Time
	// timestamp is of the newest temporal unit.
	timestamp uint32

	// intact has a bit for each target that lost nothing which later frames need.
	intact uint32
	// verdicts is a ring by frame number.
	verdicts [keptVerdicts]verdict
}

type verdict struct {
	number uint16
	kind   uint8
}

const (
	verdictNone = iota
	verdictLeftOut
	verdictForwarded
	// verdictHighest is for frames of the target's own spatial layer, which end their temporal unit.
	verdictHighest
)

// NewTargets has no target before the first frame with a structure.
func NewTargets() *Targets { return &Targets{Target: noTarget, Goal: noTarget} }

// Begin forgets everything, because frames of another layer follow.
func (t *Targets) Begin() { *t = Targets{Target: noTarget, Goal: noTarget} }

// Drops reports whether a packet of a frame is left out. spatial and temporal are the highest wanted layers; ahead says that no later packet
// came before this one. A frame keeps the verdict of its first packet.
func (t *Targets) Drops(f *descriptor.Frame, timestamp uint32, arrived time.Time, ahead bool, spatial, temporal uint8) bool {
	if kind := t.verdict(f.Number); kind != verdictNone {
		return kind == verdictLeftOut
	}
	if !f.Known || f.Structure != t.Structure && !ahead {
		return true
	}
	// A later packet of a temporal unit that began does not change the target.
	if f.Structure != t.Structure {
		t.Structure, t.Target, t.Goal, t.intact = f.Structure, noTarget, noTarget, 0
	} else if ahead && timestamp == t.timestamp {
		ahead = false
	}
	if ahead {
		t.timestamp = timestamp
		t.beginUnit(f, spatial, temporal, arrived)
	}
	return t.decide(f) == verdictLeftOut
}

// beginUnit changes the target at the first frame of a temporal unit, if the new target can be decoded from there on. That is so at a
// keyframe, if nothing that it needs was left out, or at a switch indication of a frame whose references were forwarded.
func (t *Targets) beginUnit(f *descriptor.Frame, spatial, temporal uint8, now time.Time) {
	t.Goal = goalOf(t.Structure, f.Active, spatial, temporal)
	switch {
	case t.Goal == t.Target:
	case t.Goal == noTarget, f.Keyframe, has(t.intact, t.Goal), has(f.Switch, t.Goal) && t.decodable(f):
		t.Target = t.Goal
	case t.Cut && t.Target != noTarget && t.Structure.Target(t.Goal).Spatial < t.Structure.Target(t.Target).Spatial:
		t.Target = noTarget
	}
	switch {
	case t.Goal == t.Target:
		t.Cut, t.since = false, time.Time{}
	case t.since.IsZero():
		t.since = now
	}
}

// goalOf returns the highest active target up to the wanted layers. If all are higher, it returns the lowest.
func goalOf(s *descriptor.Structure, active uint32, spatial, temporal uint8) int {
	goal, lowest := noTarget, noTarget
	for d := range descriptor.Targets(active) {
		l := s.Target(d)
		if lowest == noTarget || Higher(s.Target(lowest), l) {
			lowest = d
		}
		if l.Spatial <= spatial && l.Temporal <= temporal && (goal == noTarget || Higher(l, s.Target(goal))) {
			goal = d
		}
	}
	if goal == noTarget {
		return lowest
	}
	return goal
}

// decide notes whether a frame is forwarded. A target that misses a frame stays broken until a switch indication repairs it, unless no later
// frame needs the missing one.
func (t *Targets) decide(f *descriptor.Frame) uint8 {
	kind := uint8(verdictLeftOut)
	switch {
	case t.Target == noTarget || !has(f.Present, t.Target):
		t.intact &^= f.Present &^ f.Discardable
	case f.Spatial == t.Structure.Target(t.Target).Spatial:
		kind = verdictHighest
		t.intact |= f.Switch
	default:
		kind = verdictForwarded
		t.intact |= f.Switch
	}
	t.verdicts[f.Number%keptVerdicts] = verdict{f.Number, kind}
	return kind
}

func (t *Targets) verdict(number uint16) uint8 {
	if v := t.verdicts[number%keptVerdicts]; v.number == number {
		return v.kind
	}
	return verdictNone
}

// decodable reports whether no frame that f refers to was left out. Forgotten frames count as forwarded.
func (t *Targets) decodable(f *descriptor.Frame) bool {
	for _, back := range f.References() {
		if t.verdict(f.Number-back) == verdictLeftOut {
			return false
		}
	}
	return true
}

// Ends reports whether a packet of a frame is the last one that the receiver gets of its temporal unit. A nil Targets ends nothing.
func (t *Targets) Ends(f *descriptor.Frame) bool {
	return t != nil && f.Last && t.verdict(f.Number) == verdictHighest
}

// Reaches reports whether the wanted layers can be forwarded from the next temporal unit on, without a keyframe.
func (t *Targets) Reaches(active uint32, spatial, temporal uint8) bool {
	if t.Structure == nil {
		return false
	}
	goal := goalOf(t.Structure, active, spatial, temporal)
	return goal == t.Target || goal != noTarget && has(t.intact, goal)
}

// Waits reports whether a keyframe should be asked for, so that Goal can begin: at once for another size, for more pictures after
// risePatience. A nil Targets waits for nothing.
func (t *Targets) Waits(now time.Time) bool {
	if t == nil || t.Goal == t.Target || t.Goal == noTarget {
		return false
	}
	return t.Target == noTarget || t.Structure.Target(t.Goal).Spatial != t.Structure.Target(t.Target).Spatial || now.Sub(t.since) >= risePatience
}

func has(mask uint32, target int) bool { return mask>>target&1 == 1 }

// Higher orders layers by size, and then by frame rate.
func Higher(a, b descriptor.Layer) bool {
	return a.Spatial > b.Spatial || a.Spatial == b.Spatial && a.Temporal > b.Temporal
}
