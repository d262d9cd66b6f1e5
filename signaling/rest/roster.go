package rest

import (
	"context"
	"net/http"

	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
)

// The states of a RosterAnswer. A roster is settling if its owner is new, or if its store lost its memory, and has
// not written it yet, or if the owner may be dead.
const (
	RosterCurrent  = "current"
	RosterSettling = "settling"
	RosterUnknown  = "unknown"
)

type rosterPerson struct {
	Identity string   `json:"identity"`
	Name     string   `json:"name,omitempty"`
	Peers    []string `json:"peers,omitempty"`
	Since    int64    `json:"since"`
	Hidden   bool     `json:"hidden,omitempty"`
}

type rosterLeaver struct {
	Identity string `json:"identity"`
	Name     string `json:"name,omitempty"`
	LastSeen int64  `json:"lastSeen"`
}

// RosterAnswer says who is in a room.
type RosterAnswer struct {
	Room   ring.RoomID    `json:"room"`
	Node   ring.NodeID    `json:"node,omitempty"`
	State  string         `json:"state"`
	People []rosterPerson `json:"people"`
	Left   []rosterLeaver `json:"left,omitempty"`
	AsOf   int64          `json:"asOf,omitempty"`
}

// serveRoster tells everything to a token that runs the room or sees the cluster. Other tokens are told whom their
// person would meet.
func (a *API) serveRoster(w http.ResponseWriter, r *http.Request) {
	grant, err := a.grantOf(r)
	var room ring.RoomID
	if err == nil {
		room, err = roomOf(r, "/roster")
	}
	runs := err == nil && (grant.ForCluster() == nil || grant.ForRoomAdmin(room) == nil)
	if err == nil && !runs {
		_, err = grant.ForRoom(string(room))
	}
	if err == nil && grant.ForCluster() != nil && !a.deps.Limits.ReadRoster(grant.Identity) {
		err = limits.ErrFlood
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askLimitUsers)
	defer cancel()
	answer := a.rosterOf(ctx, room)
	if !runs {
		answer = answer.forGuests()
	}
	reply.JSON(w, http.StatusOK, answer)
}

func (a *API) rosterOf(ctx context.Context, room ring.RoomID) RosterAnswer {
	answer := RosterAnswer{Room: room, State: RosterUnknown, People: []rosterPerson{}}
	found, err := a.deps.Rosters.Roster(ctx, room)
	if err != nil {
		a.deps.Log.Debug("a roster is not read", "room", room, "error", err)
		return answer
	}
	answer.Node, answer.State, answer.AsOf = found.Pin.Node, a.stateOf(found), found.AsOf.UnixMilli()
	for _, p := range roster.People(found.Peers) {
		answer.People = append(answer.People, rosterPerson{
			Identity: p.Identity, Name: p.Name, Peers: p.Peers, Since: p.Since.UnixMilli(), Hidden: p.Hidden,
		})
	}
	for _, l := range found.Left {
		answer.Left = append(answer.Left, rosterLeaver{Identity: l.Peer.Identity, Name: l.Peer.Name, LastSeen: l.LastSeen.UnixMilli()})
	}
	return answer
}

// stateOf says how far a roster can be believed. A store that may have lost its memory is believed only about owners
// that have written since. An owner that gossip takes for dead, or that this node does not hear, may have died before
// it wrote that somebody left.
func (a *API) stateOf(found roster.Room) string {
	view := a.deps.Views.View()
	if found.Pin.IsZero() {
		for _, node := range view.Nodes {
			if !node.Load.Synced.Has(found.In) {
				return RosterUnknown
			}
		}
		return RosterCurrent
	}
	owner, lives := view.Nodes[found.Pin.Node]
	heard := lives && owner.Boot == found.Pin.Boot && !owner.Suspect && !owner.Unreachable
	if !found.Current || !heard || !owner.Load.Synced.Has(found.In) {
		return RosterSettling
	}
	return RosterCurrent
}

// forGuests leaves out what the room's people are not told.
func (a RosterAnswer) forGuests() RosterAnswer {
	people := []rosterPerson{}
	for _, p := range a.People {
		if !p.Hidden {
			people = append(people, rosterPerson{Identity: p.Identity, Name: p.Name, Since: p.Since})
		}
	}
	return RosterAnswer{Room: a.Room, State: a.State, People: people, AsOf: a.AsOf}
}
