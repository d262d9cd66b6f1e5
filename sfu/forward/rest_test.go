package forward

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// restful is a publisher that stops the layers that nobody wants, and begins again some time after it is asked to.
type restful struct {
	simulcast

	late  time.Duration
	mu    sync.Mutex
	until [3]time.Time // zero: the layer is sent
	told  [3][]bool
}

const forEver = 1000 * time.Hour

func (st *stage) restful(peer PeerID, late time.Duration) *restful {
	r := &restful{simulcast: simulcast{st: st}, late: late}
	for i, rid := range []string{"q", "h", "f"} {
		c := &camera{st: st, sequence: 1000, timestamp: 77777, pictureID: 500, height: 180 << i}
		c.layer = st.room.AddLayer(LayerConfig{
			Peer: peer, Source: SourceCamera, Kind: KindVideo, RID: rid, Codec: vp8,
			SendPLI: func() { c.mu.Lock(); c.plis++; c.mu.Unlock() },
			OnWanted: func(wanted bool) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.told[i] = append(r.told[i], wanted)
				r.until[i] = time.Now().Add(forEver)
				if wanted {
					r.until[i] = time.Now().Add(r.late)
				}
			},
		})
		r.layers = append(r.layers, c)
	}
	synctest.Wait()
	return r
}

func (r *restful) run(d time.Duration) {
	for range d / (40 * time.Millisecond) {
		for i, c := range r.layers {
			r.mu.Lock()
			rests, woken := time.Now().Before(r.until[i]), !r.until[i].IsZero()
			if !rests {
				r.until[i] = time.Time{}
			}
			r.mu.Unlock()
			if !rests {
				c.mu.Lock()
				asked := c.plis > 0
				c.plis = 0
				c.mu.Unlock()
				c.burst(asked || woken, []int{1, 3, 10}[i])
			}
		}
		r.st.pass(40 * time.Millisecond)
	}
}

func (r *restful) heard(i int) []bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told[i])
}

func (st *stage) view(peer PeerID, height int) {
	st.room.SetView(peer, []Want{{Peer: "alice", Source: SourceCamera, Width: height * 16 / 9, Height: height}})
}

// TestLayersRest: a layer that nobody is shown rests after a while and comes back when somebody wants it, who is shown a lower one until then.
// The lowest never rests.
func TestLayersRest(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.restful("alice", 200*time.Millisecond)
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		st.view("bob", 720)
		alice.run(15 * time.Second)
		for i, want := range [][]bool{nil, {false}, nil} {
			if told := alice.heard(i); !slices.Equal(told, want) {
				t.Errorf("with one large view layer %d was told %v, want %v", i, told, want)
			}
		}
		st.view("bob", 180)
		alice.run(restAfter - time.Second)
		if told := alice.heard(2); told != nil {
			t.Errorf("the largest was told %v too early", told)
		}
		alice.run(3 * time.Second)
		if told := alice.heard(2); !slices.Equal(told, []bool{false}) {
			t.Errorf("the largest was told %v", told)
		}

		// Somebody new begins with the lowest at once.
		carol := st.slot("carol", "1", KindVideo)
		carol.slot.Ready()
		st.view("carol", 720)
		alice.run(160 * time.Millisecond)
		if height := lastHeight(carol); height != 180 {
			t.Errorf("carol is first shown %d lines", height)
		}
		alice.run(400 * time.Millisecond)
		if height := lastHeight(carol); height != 720 {
			t.Errorf("carol is then shown %d lines", height)
		}
		// Who is shown something already keeps it meanwhile.
		bob.take()
		st.view("bob", 360)
		alice.run(160 * time.Millisecond)
		if packets := bob.peek(); len(packets) < 3 {
			t.Errorf("bob got %d packets while the middle layer woke up", len(packets))
		}
		alice.run(time.Second)
		if height := lastHeight(bob); height != 360 {
			t.Errorf("bob is shown %d lines", height)
		}
		if told := alice.heard(0); told != nil {
			t.Errorf("the lowest was told %v", told)
		}
	})
}

// TestALayerThatDoesNotWakeUp is given up for another one, and one whose browser stopped it is not told to rest.
func TestALayerThatDoesNotWakeUp(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.restful("alice", forEver)
		bob := st.slot("bob", "1", KindVideo)
		bob.slot.Ready()
		st.view("bob", 360)
		alice.run(15 * time.Second)
		if told := alice.heard(2); !slices.Equal(told, []bool{false}) {
			t.Fatalf("the largest was told %v", told)
		}
		st.view("bob", 720)
		alice.run(wakeWait + 2*time.Second)
		if entry := st.room.Table("bob")[0]; entry.Paused {
			t.Errorf("bob has %+v", entry)
		}
		bob.take()
		alice.run(restAfter + 5*time.Second)
		if packets := bob.peek(); len(packets) < 300*3 {
			t.Errorf("bob got %d packets of the middle layer", len(packets))
		}
		if told := alice.heard(2); !slices.Equal(told, []bool{false, true}) {
			t.Errorf("the largest, which does not come, was told %v", told)
		}
		if told := alice.heard(1); told != nil {
			t.Errorf("the middle one was told %v", told)
		}
	})
}

func lastHeight(v *screenful) (height int) {
	for _, p := range v.take() {
		if h := parseVP8(p.Payload).Height; h > 0 {
			height = h
		}
	}
	return height
}
