package forward

// Shown counts the slots of a room by what they show.
type Shown struct {
	Sound int
	// Pictures are by their height: up to 180 lines, 360, 720, larger, and unknown before the first keyframe.
	To180, To360, To720, Larger, Unknown int
	// Waiting slots have somebody to show and show nothing.
	Waiting int
	// Short are subscribers whose path carries less than what they would be shown.
	Short int
}

// Plus adds up the slots of two rooms.
func (s Shown) Plus(t Shown) Shown {
	return Shown{
		Sound: s.Sound + t.Sound, To180: s.To180 + t.To180, To360: s.To360 + t.To360, To720: s.To720 + t.To720, Larger: s.Larger + t.Larger,
		Unknown: s.Unknown + t.Unknown, Waiting: s.Waiting + t.Waiting, Short: s.Short + t.Short,
	}
}

// TryShown has the loop give the counts to tell, which must not block. It returns false when the loop is too busy.
func (r *Room) TryShown(tell func(Shown)) bool {
	return r.try(func() {
		var shown Shown
		for _, sub := range r.members.subscribers {
			if sub.short > 0 {
				shown.Short++
			}
			for _, s := range sub.slots {
				shown.add(s)
			}
		}
		tell(shown)
	})
}

func (s *Shown) add(slot *Slot) {
	switch layer := slot.current; {
	case slot.entry.Peer == "":
	case slot.cfg.Kind != KindVideo:
		s.Sound++
	case layer == nil || slot.paused:
		s.Waiting++
	case layer.height == 0:
		s.Unknown++
	case layer.height <= 180:
		s.To180++
	case layer.height <= 360:
		s.To360++
	case layer.height <= 720:
		s.To720++
	default:
		s.Larger++
	}
}
