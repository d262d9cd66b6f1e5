package chaos

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// TestASoakDrawsWhatItIsTold and refuses what it does not know or cannot do.
func TestASoakDrawsWhatItIsTold(t *testing.T) {
	o := defaults()
	o.Scenario, o.Soak, o.Faults, o.Cluster = Soak, time.Minute, []Name{EdgePause, ClockJump}, &devcluster.Client{}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := o.soakFaults(); !slices.Equal(got, o.Faults) {
		t.Errorf("it draws %v, want %v", got, o.Faults)
	}
	var status devcluster.Status
	for _, role := range []devcluster.Role{devcluster.RoleSFU, devcluster.RoleSFU, devcluster.RoleSFU, devcluster.RoleSignaling, devcluster.RoleSignaling, devcluster.RoleStore} {
		status.Nodes = append(status.Nodes, devcluster.Node{Role: role})
	}
	for i := range status.Nodes {
		status.Nodes[i].State = devcluster.StateRunning
	}
	if err := o.suits(status); err != nil {
		t.Error(err)
	}
	o.Faults = []Name{SentinelFreeze}
	if err := o.suits(status); err == nil {
		t.Error("a cluster without Sentinels is to freeze one")
	}
	status.Nodes = append(status.Nodes, devcluster.Node{Role: devcluster.RoleSentinel})
	if o.countSentinels(status); !slices.Equal(o.soakFaults(), o.Faults) {
		t.Error("a cluster with Sentinels does not freeze one")
	}
	for _, faults := range [][]Name{{"earthquake"}, {Rolling}} {
		if o.Faults = faults; o.Validate() == nil {
			t.Errorf("%v are taken for faults of a soak", faults)
		}
	}
	o.Scenario, o.Faults = Kill, []Name{Kill}
	if o.Validate() == nil {
		t.Error("faults were chosen for what is no soak")
	}
}

// TestAPauseHasALength within its bounds, and not always the same.
func TestAPauseHasALength(t *testing.T) {
	c, err := New(defaults())
	if err != nil {
		t.Fatal(err)
	}
	s, _ := find(EdgePause)
	lengths := make(map[time.Duration]bool)
	for range 100 {
		length := s.lasts(c)
		if length < shortestPause || length > longestStop {
			t.Errorf("a pause of %s", length)
		}
		lengths[length] = true
	}
	if len(lengths) < 50 {
		t.Errorf("100 pauses have %d lengths", len(lengths))
	}
}

// TestALetterMayComeLate: who was there all the time is waited for.
func TestALetterMayComeLate(t *testing.T) {
	x := newExchange()
	ann, bob := x.enlist("ann"), x.enlist("bob")
	bob.away = time.Now().Add(-time.Hour)
	x.write(ann, "bob")
	now := time.Now()
	x.told("ann", 1, stateDelivered)
	if x.missing(now) == nil {
		t.Error("a letter that did not come is not missed")
	}
	x.took(bob, "ann", []byte(`{"from":"ann","number":1}`))
	if err := x.missing(now); err != nil {
		t.Error(err)
	}
}

// TestOneWhoWaitedIsNotIn: what a newcomer was told is kept.
func TestOneWhoWaitedIsNotIn(t *testing.T) {
	n := &newcomer{person: person{room: "door", name: "newcomer-1"}, door: true}
	var err error
	if n.peer, err = peer.New(peer.Options{URL: "http://127.0.0.1:1/", Room: "door"}, nil); err != nil {
		t.Fatal(err)
	}
	n.observe(peer.Moment{Step: peer.StepWaiting})
	n.refused = context.DeadlineExceeded
	if told := n.told(); !told.Waited || told.Took != 0 || !told.Door || told.Refused == "" || n.inside() == nil {
		t.Errorf("%+v", told)
	}
}
