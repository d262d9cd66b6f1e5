package chaos

import "slices"

// PlacesKept looks for people of the line in the full room, and in the end for those who were in it.
func PlacesKept(w *World) Verdict {
	v := verdict("no place is lost to the line", "nobody who was in the room with a cap loses the place, and nobody who waits for it is let in while they all stay")
	looks := 0
	inside := func(by string, people []string, whole bool) {
		looks++
		for _, who := range w.Line {
			if slices.Contains(people, who) {
				v.broken("%s has %s in %s, who waits for it", by, who, w.Capped)
			}
		}
		for _, who := range w.People[w.Capped] {
			if whole && !slices.Contains(people, who) {
				v.broken("%s was in %s, and in the end %s does not have them", who, w.Capped, by)
			}
		}
	}
	see := func(l Look, whole bool) {
		if r, asked := l.Rosters[w.Capped]; asked {
			var people []string
			for _, p := range r.People {
				people = append(people, p.Identity)
			}
			inside("the roster", people, whole && r.State == current)
		}
		for _, h := range l.holders(w.Capped) {
			var people []string
			for _, p := range h.Peers {
				people = append(people, p.Identity)
			}
			inside(h.Node, people, whole)
		}
	}
	for _, l := range slices.Concat([]Look{w.Before}, w.Between, []Look{w.After}) {
		see(l, false)
	}
	see(w.Full, true)
	for _, client := range w.Clients {
		if client.Room == w.Capped && client.Refused != "" {
			v.broken("%s was in %s, and was refused: %s", client.Name, w.Capped, client.Refused)
		}
	}
	if looks == 0 {
		return v.unchecked("nobody looked at the room with a cap")
	}
	return *v
}
