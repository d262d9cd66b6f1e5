package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/peer"
)

func after(ms int) time.Time { return struckAt.Add(time.Duration(ms) * time.Millisecond) }

// TestWhereTheTimeGoes joins a client's times with two signaling nodes' logs.
func TestWhereTheTimeGoes(t *testing.T) {
	w := killed()
	w.Clients[0].Streams = 3
	w.Clients[0].Moments = []peer.Moment{
		{Step: peer.StepFirst, At: struckAt.Add(-time.Second), Stream: peer.StreamID{Peer: "art", Source: "camera"}}, // of an earlier move
		{Step: peer.StepRestart, At: after(20)},
		{Step: peer.StepOffer, At: after(25)},
		{Step: peer.StepOffer, At: after(30)}, // the second attempt
		{Step: peer.StepAnswer, At: after(50)},
		{Step: peer.StepDTLS, At: after(90)}, // nobody saw a pair
		{Step: peer.StepFirst, At: after(100), Stream: peer.StreamID{Peer: "art", Source: "microphone"}},
		{Step: peer.StepFirst, At: after(140), Stream: peer.StreamID{Peer: "art", Source: "camera"}},
		{Step: peer.StepFirst, At: after(300), Stream: peer.StreamID{Peer: "art", Source: "camera"}},
		{Step: peer.StepFirst, At: after(5000), Stream: peer.StreamID{Peer: "bea", Source: "microphone"}}, // when somebody else had spoken
	}
	w.Clients[0].FewSlots = true
	w.Log = parseLog(strings.NewReader(strings.Join([]string{
		`{"time":"2026-11-21T11:59:59.000Z","msg":"node down","node":"sfu-1"}`,
		`{"time":"2026-11-21T12:00:00.015Z","msg":"room re-homed","room":"a"}`,
		`{"time":"2026-11-21T12:00:00.012Z","msg":"room re-homed","room":"a"}`,
		`{"time":"2026-11-21T12:00:00.001Z","msg":"room re-homed","room":"b"}`,
		`{"time":"2026-11-21T12:00:00.008Z","msg":"node down","node":"sfu-1","evid`,
		`{"time":"2026-11-21T12:00:00.010Z","msg":"node down","node":"sfu-1"}`,
		"not a line of ours",
	}, "\n")), "signaling-1")
	gaps := measureGaps(w)
	if len(gaps) != 1 {
		t.Fatalf("%d clients had to move, want 1", len(gaps))
	}
	want := map[peer.Step]float64{"detect": 10, "claim": 2, "tell": 8, "offer": 10, "answer": 20, "dtls": 40, "first": 10}
	if !maps.Equal(gaps[0].Phases, want) {
		t.Errorf("phases %v, want %v", gaps[0].Phases, want)
	}
	if !slices.Equal(gaps[0].GapsMs, []float64{100, 140}) || gaps[0].Missing != 1 {
		t.Errorf("gaps %v and %d missing, want 100, 140 and 1", gaps[0].GapsMs, gaps[0].Missing)
	}
	w.Clients[0].FewSlots = false
	if got := measureGaps(w)[0].GapsMs; !slices.Equal(got, []float64{100, 140, 5000}) {
		t.Errorf("gaps %v where everybody has a slot", got)
	}
}

// TestWhoIsMovedByAStandby makes no offer, and is told of the new node after its media has come from there.
func TestWhoIsMovedByAStandby(t *testing.T) {
	moments := []peer.Moment{
		{Step: peer.StepOffer, At: struckAt.Add(-time.Minute)},
		{Step: peer.StepICE, At: after(30), Hop: 1},
		{Step: peer.StepFirst, At: after(40), Hop: 1, Stream: peer.StreamID{Peer: "art", Source: "camera"}},
		{Step: peer.StepContinued, At: after(50)},
	}
	w := killed()
	w.Clients[0].Moments = moments
	g := measureGaps(w)[0]
	if want := map[peer.Step]float64{"ice": 30, "first": 10}; !g.Silent || !maps.Equal(g.Phases, want) || gapsOf([]ClientGap{g}).Silent != 1 {
		t.Errorf("%+v, want a silent move with the phases %v", g, want)
	}
	w.Clients[0].Moments = append(moments, peer.Moment{Step: peer.StepOffer, At: after(3000)}) // nothing came
	if g := measureGaps(w)[0]; g.Silent {
		t.Error("who made an offer counts as moved by a standby")
	}
	w.Clients[0].Moments = moments[:3] // the same node, by another address
	if g := measureGaps(w)[0]; g.Silent {
		t.Error("who was told of no other node counts as moved by a standby")
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add(`{"time":"2026-11-21T12:00:00.010Z","msg":"node down","node":"sfu-1"}` + "\n{")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range parseLog(strings.NewReader(text), "signaling-1") {
			if e.Msg == "" || e.By != "signaling-1" {
				t.Errorf("kept %+v", e)
			}
		}
	})
}

// TestReports writes a run of one kept and one broken trial in every form.
func TestReports(t *testing.T) {
	w := killed()
	w.Clients[0].Moments = []peer.Moment{{Step: peer.StepFirst, At: after(100), Stream: peer.StreamID{Peer: "art", Source: "<camera>"}}}
	good := &Trial{Number: 1, Scenario: Kill, Faults: w.Faults, Verdicts: Judge(w), Clients: measureGaps(w)}
	w.Received[0].Fresh = false
	bad := &Trial{Number: 2, Scenario: Kill, Faults: w.Faults, Verdicts: Judge(w), Clients: measureGaps(w)}
	r := &Report{Scenario: Kill, Trials: []*Trial{good, bad}, Began: struckAt}
	r.finish(healedAt)
	if r.Kept || r.Packets == nil || r.Packets.Streams.P50 != 100 || r.Frames != nil {
		t.Errorf("kept %t, packets %+v, frames %+v", r.Kept, r.Packets, r.Frames)
	}
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NOT KEPT", "trial 2, everybody receives everybody: a: ann has no fresh camera of art"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, table.String())
		}
	}
}

// TestSizes: a room of two that moves beside a room of four does not count.
func TestSizes(t *testing.T) {
	moved := func(room string, people int, rehomed, last float64) (all []ClientGap) {
		for range people {
			all = append(all, ClientGap{Room: room, GapsMs: []float64{last, 100}, Phases: map[peer.Step]float64{"detect": 2, "claim": rehomed - 2}})
		}
		return all
	}
	both, small := &Trial{Clients: append(moved("a", 2, 900, 9000), moved("large", 4, 15, 300)...)}, &Trial{Clients: moved("a", 2, 10, 200)}
	r := &Report{Trials: []*Trial{both, small}}
	r.finish(healedAt)
	if len(r.Sizes) != 2 || r.Sizes[0].People != 2 || r.Sizes[0].LastMs.Max != 200 || r.Sizes[0].LastMs.Count != 2 ||
		r.Sizes[1].People != 4 || r.Sizes[1].RehomedMs.P50 != 15 || r.Sizes[1].FirstMs.P50 != 100 || r.Sizes[1].LastMs.P50 != 300 {
		t.Errorf("%+v", r.Sizes)
	}
	if all := sizes([]*Trial{small}); all != nil {
		t.Errorf("one size: %+v", all)
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	if err := defaults().Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	err := Options{Scenario: "flood", Trials: -1, Rooms: 1, Peers: 1, Browsers: 1}.Validate()
	for _, want := range []string{"flood", "--trials", "--rooms", "--peers", "--browsers"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in %v", want, err)
		}
	}
}

func TestASoakIsTallied(t *testing.T) {
	const trials, broken = 400, 390
	r := &Report{Scenario: Soak, Began: struckAt}
	for n := range trials {
		trial := &Trial{Number: n + 1, Scenario: Kill, Verdicts: []Verdict{{Name: "x", Outcome: Kept}}}
		if n%2 == 0 {
			trial.Scenario = Freeze
		}
		for i := range 6 {
			ms := float64(100 + 10*n + i)
			trial.Clients = append(trial.Clients, ClientGap{Client: fmt.Sprint(i), Room: "r", GapsMs: []float64{ms}, Phases: map[peer.Step]float64{"detect": 20, "first": ms - 20}})
		}
		r.Trials = append(r.Trials, trial)
	}
	r.Trials[broken].Verdicts[0].Outcome = Broken
	r.finish(healedAt)
	if len(r.Tallies) != 2 || r.Tallies[0].Trials != trials/2 || r.Tallies[0].Kept+r.Tallies[1].Kept != trials-1 {
		t.Errorf("tallies: %+v", r.Tallies)
	}
}

// defaults are those of the command.
func defaults() Options {
	return Options{Scenario: Kill, Trials: 3, Rooms: 6, Peers: 3, Cameras: -1, Soak: 5 * time.Minute, Percent: 5, Delay: 200 * time.Millisecond}
}
