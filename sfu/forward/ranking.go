package forward

import "cmp"

type ranking struct {
	arrived  []*publication // with layers, by arrival
	shared   []*publication // not muted
	spoken   []*publication // contenders by speaking, best first
	speaking int            // in spoken
}

// Speakers, then the unmuted, then who spoke last.
func comparePlaces(a, b *publication) int {
	return cmp.Or(
		-compareBool(a.speaking, b.speaking),
		compareBool(a.muted, b.muted),
		-a.lastSpoke.Compare(b.lastSpoke),
	)
}

func (k *ranking) add(p *publication) {
	k.arrived = append(k.arrived, p)
	switch {
	case p.contends():
		k.spoken = append(k.spoken, p)
		if p.speaking {
			k.speaking++
		}
	case !p.muted:
		k.shared = append(k.shared, p)
	}
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
