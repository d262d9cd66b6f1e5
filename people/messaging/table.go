package messaging

import "slices"

// Nearly always one holder: 20 bytes and a share of the map.
type table struct {
	users   map[Key]uint32 // a place, or with manyBit one in many
	many    [][]uint32
	free    []uint32
	holders []Peer
	places  map[Peer]uint32
}

const manyBit = 1 << 31

func newTable() table {
	return table{users: make(map[Key]uint32), places: make(map[Peer]uint32)}
}

func (t *table) place(holder Peer) uint32 {
	if at, ok := t.places[holder]; ok {
		return at
	}
	at := slices.Index(t.holders, Peer{})
	if at < 0 {
		at = len(t.holders)
		t.holders = append(t.holders, holder)
	}
	t.holders[at] = holder
	t.places[holder] = uint32(at)
	return uint32(at)
}

func (t *table) add(user Key, holder Peer) {
	at := t.place(holder)
	entry, known := t.users[user]
	switch {
	case !known:
		t.users[user] = at
	case entry&manyBit != 0:
		if list := &t.many[entry&^manyBit]; !slices.Contains(*list, at) {
			*list = append(*list, at)
		}
	case entry != at:
		t.users[user] = t.keep([]uint32{entry, at})
	}
}

func (t *table) keep(list []uint32) uint32 {
	if n := len(t.free); n > 0 {
		at := t.free[n-1]
		t.free = t.free[:n-1]
		t.many[at] = list
		return at | manyBit
	}
	t.many = append(t.many, list)
	return uint32(len(t.many)-1) | manyBit
}

func (t *table) remove(user Key, holder Peer) {
	if at, ok := t.places[holder]; ok {
		t.removeAt(user, t.users[user], at)
	}
}

func (t *table) removeAt(user Key, entry, at uint32) {
	if entry&manyBit == 0 {
		if _, known := t.users[user]; known && entry == at {
			delete(t.users, user)
		}
		return
	}
	list := &t.many[entry&^manyBit]
	*list = slices.DeleteFunc(*list, func(other uint32) bool { return other == at })
	if len(*list) == 1 {
		t.users[user] = (*list)[0]
		*list = nil
		t.free = append(t.free, entry&^manyBit)
	}
}

func (t *table) drop(holder Peer) {
	at, ok := t.places[holder]
	if !ok {
		return
	}
	for user, entry := range t.users {
		t.removeAt(user, entry, at)
	}
	delete(t.places, holder)
	t.holders[at] = Peer{}
}

func (t *table) of(user Key) []Peer {
	entry, known := t.users[user]
	switch {
	case !known:
		return nil
	case entry&manyBit == 0:
		return []Peer{t.holders[entry]}
	}
	var list []Peer
	for _, at := range t.many[entry&^manyBit] {
		list = append(list, t.holders[at])
	}
	return list
}
