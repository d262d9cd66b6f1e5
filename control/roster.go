package control

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// expectedBytes leaves a quarter of a message's bytes to the rest of an Attach. An entry has its key and its length before it.
const (
	expectedBytes = requestBytes * 3 / 4
	perEntryBytes = 4
)

// Expected returns the first of the people of a roster, as many as one Attach can name.
func Expected(roster []*Peer) []*Peer {
	size := 0
	for i, p := range roster {
		if size += proto.Size(p) + perEntryBytes; size > expectedBytes {
			return roster[:i]
		}
	}
	return roster
}

// EncodeRosterChanges writes changes of different peers for PeerEvent.roster_changes. It fails for text that is not UTF-8.
func EncodeRosterChanges(changes []*RosterChange) ([]byte, error) {
	return proto.Marshal(&RosterChanges{Changes: changes})
}

// DecodeRosterChanges reads what EncodeRosterChanges wrote.
func DecodeRosterChanges(encoded []byte) ([]*RosterChange, error) {
	var told RosterChanges
	if err := proto.Unmarshal(encoded, &told); err != nil {
		return nil, fmt.Errorf("read changes of a roster: %w", err)
	}
	return told.GetChanges(), nil
}
