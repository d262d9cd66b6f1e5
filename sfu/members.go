package sfu

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

// members are the other nodes of a room: at its owner the branches, at a branch the owner. The room's loop owns it, and each member in it.
// Links run in goroutines of their own, which know a member by its constant fields and wait for it by its channels.
type members struct {
	current *heldPin
	loop    taskLoop

	// owner is nil at the owner.
	owner *member
	// branches are the nodes with further people of the room, by name. A branch has none.
	branches map[string]*member
	// appointed hands the loop's caller the branches that get a link.
	appointed chan *member
}

func newMembers(current *heldPin, loop taskLoop) *members {
	return &members{current: current, loop: loop, branches: map[string]*member{}, appointed: make(chan *member, mostBranches)}
}

// has reports whether a branch has not been given up.
func (m *members) has(branch *member) bool { return m.branches[branch.place.GetNode()] == branch }

// appoint makes a node a branch of the room, or returns it if it is one; nil: there are as many as may be.
func (m *members) appoint(place *control.Place, why string) (branch *member, isNew bool) {
	if known := m.branches[place.GetNode()]; known != nil && known.place.GetBoot() == place.GetBoot() {
		known.gathering = false
		return known, false
	}
	if len(m.branches) >= mostBranches {
		return nil, false
	}
	branch = newMember(place, why, time.Now())
	m.branches[place.GetNode()] = branch
	m.tellOthers()
	// The queue has a place for each branch that there may be, unless some were given up since: the loop is not waited for on the loop.
	go func() {
		select {
		case m.appointed <- branch:
		case <-m.loop.done:
		}
	}()
	return branch, true
}

// giveUp ends a branch that has nobody any more, or that nobody hears.
func (m *members) giveUp(branch *member) {
	delete(m.branches, branch.place.GetNode())
	m.tellOthers()
	close(branch.ending)
	if branch.link != nil {
		branch.link.finish()
		branch.link = nil
	}
	m.loop.after(branchLostAfter, func() { close(branch.ended) })
}

// finish has the branches of a room that ends hear the last words, and waits a moment for that. To those of a node that stops the
// link is cut: the room goes on elsewhere, perhaps at one of them.
func (m *members) finish(ctx context.Context, linking *sync.WaitGroup) {
	stops := ctx.Err() != nil
	for _, branch := range m.branches {
		close(branch.ending)
		switch {
		case branch.link == nil:
		case stops:
			branch.link.end()
		default:
			branch.link.finish()
		}
	}
	if stops {
		return
	}
	finished := make(chan struct{})
	go func() { linking.Wait(); close(finished) }()
	late := time.NewTimer(lastWords)
	defer late.Stop()
	select {
	case <-finished:
	case <-late.C:
	}
}

func (m *members) allUp() bool {
	for _, branch := range m.branches {
		if !branch.up() {
			return false
		}
	}
	return true
}

// servedBy returns the branch that has somebody who is new to this owner; nil: none. The error is errRelinking.
func (m *members) servedBy(a attachment) (*member, error) {
	for _, branch := range m.branches {
		switch {
		case a.request.GetServedBy() == "" || branch.place.GetBoot() != a.request.GetServedBy() || branch.gathering:
		case branch.up():
			return branch, nil
		case !a.waited:
			return nil, errRelinking
		}
	}
	return nil, nil
}

// tell says something to the other node of a link, under the room's fence.
func (m *members) tell(to *member, message *control.LinkMessage) {
	if to != nil && to.link != nil {
		message.Fence = control.FenceProto(m.current.pin().Fence)
		to.link.say(message)
	}
}

// tellBranches has the branches tell their people.
func (m *members) tellBranches(event *control.PeerEvent) {
	for _, branch := range m.branches {
		m.tell(branch, &control.LinkMessage{Message: &control.LinkMessage_Told{Told: event}})
	}
}

// tellOthers tells each branch of the others.
func (m *members) tellOthers() {
	for _, branch := range m.branches {
		others := &control.LinkMembers{}
		for _, other := range m.branches {
			if other != branch {
				others.Branches = append(others.Branches, other.place)
			}
		}
		m.tell(branch, &control.LinkMessage{Message: &control.LinkMessage_Members{Members: others}})
	}
}

// release tells a branch that a peer has attached elsewhere.
func (m *members) release(p *peer, generation uint64) {
	m.tell(p.place, &control.LinkMessage{Message: &control.LinkMessage_Elsewhere{Elsewhere: &control.LinkElsewhere{Peer: string(p.id), Generation: generation}}})
}
