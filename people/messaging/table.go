package messaging

import "slices"

// table says at which nodes a user has clients. Nearly every user has one holder, which is in first; the few further
// holders are in more. Both maps refer to holders by pointer, so that a registration costs 24 bytes and not a whole Peer.
// BenchmarkAMillionRegistrations measures it.
type table struct {
	first   map[Key]*Peer
	more    map[Key][]*Peer
	holders map[Peer]*Peer // the one pointer of each holder, so that pointers can be compared
}

func newTable() table {
	return table{first: make(map[Key]*Peer), more: make(map[Key][]*Peer), holders: make(map[Peer]*Peer)}
}

func (t *table) add(user Key, holder Peer) {
	at := t.holders[holder]
	if at == nil {
		at = &holder
		t.holders[holder] = at
	}
	switch first, known := t.first[user]; {
	case !known:
		t.first[user] = at
	case first != at && !slices.Contains(t.more[user], at):
		t.more[user] = append(t.more[user], at)
	}
}

func (t *table) remove(user Key, holder Peer) {
	if at := t.holders[holder]; at != nil {
		t.removeAt(user, at)
	}
}

func (t *table) removeAt(user Key, at *Peer) {
	more := t.more[user]
	if t.first[user] == at {
		if len(more) == 0 {
			delete(t.first, user)
			return
		}
		t.first[user], more = more[0], more[1:]
	} else if i := slices.Index(more, at); i >= 0 {
		more = slices.Delete(more, i, i+1)
	} else {
		return
	}
	if len(more) == 0 {
		delete(t.more, user)
	} else {
		t.more[user] = more
	}
}

// drop removes a holder that has left from all users.
func (t *table) drop(holder Peer) {
	at := t.holders[holder]
	if at == nil {
		return
	}
	for user := range t.first {
		t.removeAt(user, at)
	}
	delete(t.holders, holder)
}

// of returns the holders of a user.
func (t *table) of(user Key) []Peer {
	first := t.first[user]
	if first == nil {
		return nil
	}
	list := []Peer{*first}
	for _, at := range t.more[user] {
		list = append(list, *at)
	}
	return list
}
