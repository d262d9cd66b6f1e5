package rest

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	noticeBytes = 64 << 10
	// noticePatience is how long the states are waited for. After it, those known so far are the answer.
	noticePatience = 10 * time.Second
)

// noticeRequest comes from somebody who runs the room, or the cluster if it names no room.
type noticeRequest struct {
	// To is empty if everybody in Room is meant.
	To   []string        `json:"to"`
	Room ring.RoomID     `json:"room"`
	Body json.RawMessage `json:"body"`
}

type noticeState struct {
	User  string          `json:"user"`
	State messaging.State `json:"state"`
}

func (a *API) serveMessages(w http.ResponseWriter, r *http.Request) {
	grant, err := a.grantOf(r)
	var ask noticeRequest
	if err == nil {
		ask, err = readNotice(r, grant)
	}
	if err == nil && grant.ForCluster() != nil && !a.deps.Limits.SendNotice(grant.Identity) {
		err = limits.ErrFlood
	}
	for i, user := range ask.To {
		ask.To[i] = access.Identity(user)
	}
	slices.Sort(ask.To)
	ask.To = slices.Compact(ask.To)
	if err == nil && len(ask.To) == 0 {
		ask.To, err = a.peopleOf(r.Context(), ask.Room)
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	reply.JSON(w, http.StatusOK, map[string][]noticeState{"to": a.notify(r.Context(), grant, ask)})
}

func readNotice(r *http.Request, grant access.Grant) (ask noticeRequest, err error) {
	if err := readBody(r, noticeBytes, "{to?, room?, body}", &ask); err != nil {
		return ask, err
	}
	if ask.Room == "" {
		err = grant.ForClusterAdmin()
	} else if ask.Room, err = access.CheckRoom(string(ask.Room)); err == nil {
		err = grant.ForRoomAdmin(ask.Room)
	}
	if err != nil {
		return ask, err
	}
	if len(ask.To) == 0 && ask.Room != "" {
		return ask, wire.CheckNotice([]string{"everybody"}, ask.Body)
	}
	return ask, wire.CheckNotice(ask.To, ask.Body)
}

func (a *API) peopleOf(ctx context.Context, room ring.RoomID) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimitUsers)
	defer cancel()
	found, err := a.deps.Rosters.Roster(ctx, room)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", orchestrator.ErrStoreUnavailable, err)
	}
	var people []string
	for _, p := range roster.People(found.Peers) {
		if !p.Hidden {
			people = append(people, p.Identity)
		}
	}
	return people, nil
}

// notify returns when all receivers have an answer, or when the patience ends.
func (a *API) notify(ctx context.Context, grant access.Grant, ask noticeRequest) []noticeState {
	// mu guards the next two.
	var mu sync.Mutex
	states, open := make(map[string]messaging.State), len(ask.To)
	done := make(chan struct{})
	settle := func(user string, state messaging.State) {
		mu.Lock()
		defer mu.Unlock()
		states[user] = state
		if state == messaging.StateAccepted {
			return
		}
		if open--; open == 0 {
			close(done)
		}
	}
	sender := &messaging.Client{Trusted: true, Tell: func(status messaging.Status) { settle(string(status.To), status.State) }}
	out := messaging.Message{
		From: messaging.UserID(cmp.Or(grant.Identity, "operator")), Name: cmp.Or(access.ShownName(grant.Name), access.ShownName(grant.Identity), "Operator"),
		Stream: "notice-" + rand.Text(), Seq: 1, Kind: string(wire.MessageNotice), Body: ask.Body, Room: string(ask.Room), At: time.Now().UnixMilli(),
	}
	for _, user := range ask.To {
		if err := a.deps.Messages.Submit(sender, messaging.UserID(user), out); err != nil {
			settle(user, "refused")
		}
	}
	patience := time.NewTimer(noticePatience)
	defer patience.Stop()
	if len(ask.To) > 0 {
		select {
		case <-done:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	mu.Lock()
	defer mu.Unlock()
	answer := make([]noticeState, 0, len(ask.To))
	for _, user := range ask.To {
		answer = append(answer, noticeState{User: user, State: states[user]})
	}
	return answer
}
