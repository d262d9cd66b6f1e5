//go:build storefaults

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// The store's kill: how many rooms of two talk, how many people wait for a new room each, how long the store is
// away at least, and how soon after its first answer to PING people must be in. Who was refused asks again after 0.5 s
// and is in at the second try at the latest, unless the machine stands still: nine of ten must make it, everybody in lateReturn.
const (
	storeRooms  = 50
	storeWaits  = 10
	storeAway   = 2 * maxUndisturbedGap
	storeReturn = time.Second
	lateReturn  = 5 * time.Second
)

// TestAHundredPeopleDoNotNeedTheStore kills the store under a hundred synthetic people and two browsers: media goes
// on, people join the rooms that are known, new rooms are refused for now, and those who wait, a page among them,
// are in within a second of its return, without anybody doing anything.
func TestAHundredPeopleDoNotNeedTheStore(t *testing.T) {
	needChromium(t)
	fleet := storetest.StartAlone(t)
	c := onStore(t, fleet)
	pair := []*participant{join(t, c.URL(), "pair", "Ada", nil), join(t, c.URL(), "pair", "Alan", nil)}
	stack, err := peer.NewStack(peer.VideoLight, true)
	if err != nil {
		t.Fatal(err)
	}
	calls := gatherPairs(t, c, stack, storeRooms)
	for _, p := range pair {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, pair)
	// Its browser runs before the fault: to start one keeps a small machine busy for a second, which shows in the calls.
	page := &participant{page: openPage(t, "Annie", c.URL())}
	k := keep(t, c, calls)
	pairBefore := heldOnce(t, c, "pair")
	for _, p := range pair {
		p.mark(t)
		p.watchFrames(t)
	}
	heard := soundOf(t, pair)

	killedAt := time.Now()
	fleet.Processes[0].Kill(t)
	late := gatherOn(t, c, stack, calls[0].room, "late", 1)
	waiting := &people{room: "waited-for"}
	for i := range storeWaits {
		waiting.peers = append(waiting.peers, gatherOn(t, c, stack, fmt.Sprintf("waited-for-%d", i), "waits", 1).peers...)
	}
	page.mustEval(t, fmt.Sprintf("void setTimeout(() => location.assign(%q))", callAddress(c.URL(), "waited-for-0", "Annie", nil)), nil)
	refusedClearly(t, c)
	pageRefused(t, page)
	calls[0].with(late).everybodyReceives(t, 30*time.Second)
	waiting.refusedFrom(t, killedAt)
	pageIn := whenIn(page)

	fleet.Processes[0].Restart(t)
	back := time.Now()
	first := firstIn(t, c)
	joined := waiting.joinedAt(t)
	shown := <-pageIn
	if shown.err != nil {
		t.Fatal(shown.err)
	}
	t.Logf("away for %v", back.Sub(killedAt).Round(time.Millisecond))
	inAfter(t, back, first, append(joined, shown.at))

	heardAll(t, pair, heard)
	frames := time.Duration(0)
	for _, p := range pair {
		frames = max(frames, p.longestFrameGap(t))
	}
	if frames > maxUndisturbedGap {
		t.Errorf("a page had no new picture for %v, want at most %v", frames, maxUndisturbedGap)
	}
	undisturbed(t, c, pairBefore, pair)
	k.longest = maxUndisturbedGap // Three browsers and the people are all that two cores can do.
	gap := k.untouched(t, c, nil)
	t.Logf("longest pause of a stream: %v of %d at the synthetic people, %v between pictures at the browsers", gap, 4*storeRooms, frames)
}

// refusedFrom waits until each of these people has been refused at least thrice and the store has been away long enough.
func (g *people) refusedFrom(t *testing.T, killedAt time.Time) {
	t.Helper()
	eventually(t, 30*time.Second, "those who want new rooms are refused for now, again and again", func() error {
		for i, p := range g.peers {
			if s := p.Stats(); s.Joined || s.Codes[wire.CodeStoreUnavailable] < 3 {
				return fmt.Errorf("person %d: joined %t, codes %v", i, s.Joined, s.Codes)
			}
		}
		if away := time.Since(killedAt); away < storeAway {
			return fmt.Errorf("it has been away for %v", away)
		}
		return nil
	})
}

// joinedAt waits until all of these people have joined, and says when each did.
func (g *people) joinedAt(t *testing.T) []time.Time {
	t.Helper()
	var at []time.Time
	eventually(t, 30*time.Second, "those who wait get in", func() error {
		at = nil
		for i, p := range g.peers {
			s := p.Stats()
			if !s.Joined {
				return fmt.Errorf("person %d: codes %v", i, s.Codes)
			}
			at = append(at, s.JoinedAt)
		}
		return nil
	})
	return at
}

// inAfter fails if a new join took longer than storeReturn from the store's return, or more than a tenth of those
// who had waited for it did. The page is the last of them.
func inAfter(t *testing.T, back, first time.Time, waited []time.Time) {
	t.Helper()
	page := waited[len(waited)-1].Sub(back)
	slices.SortFunc(waited, time.Time.Compare)
	at := func(n int) time.Duration { return waited[n].Sub(back).Round(time.Millisecond) }
	last, late := len(waited)-1, len(waited)/10
	t.Logf("after the store's first PING a new join was in in %v; of %d who waited half in %v, nine of ten in %v, all in %v, the page in %v",
		first.Sub(back).Round(time.Millisecond), len(waited), at(last/2), at(last-late), at(last), page)
	if took := first.Sub(back); took > storeReturn {
		t.Errorf("a new join was in %v after the store's return, want at most %v", took, storeReturn)
	}
	if at(last-late) > storeReturn || at(last) > lateReturn {
		t.Errorf("of %d who waited nine of ten were in after %v, want at most %v, and all after %v, want %v", len(waited), at(last-late), storeReturn, at(last), lateReturn)
	}
}

// gatherPairs lets two synthetic people into each of n rooms. They share what is costly to make.
func gatherPairs(t *testing.T, c *devcluster.Cluster, stack *peer.Stack, n int) []*people {
	t.Helper()
	var calls []*people
	for i := range n {
		calls = append(calls, gatherOn(t, c, stack, fmt.Sprintf("call-%d", i), "person", 2))
		calls[i].settledAt(t, time.Minute, func(at wire.Placement) bool { return at.Epoch != 0 })
	}
	return calls
}

// refusedClearly: a join of a new room is refused at once with a code and a sentence, and an operator's question
// with a status.
func refusedClearly(t *testing.T, c *devcluster.Cluster) {
	t.Helper()
	began := time.Now()
	_, _, err := joinAs(t.Context(), c, "asked-once", "impatient")
	refused, isRefusal := errors.AsType[*peer.RefusedError](err)
	if !isRefusal || refused.Code != wire.CodeStoreUnavailable || !strings.Contains(strings.ToLower(refused.Message), "try again") {
		t.Errorf("a join of a new room was answered %v, want %s", err, wire.CodeStoreUnavailable)
	}
	if took := time.Since(began); took > 5*time.Second { // 0.3 s for the store
		t.Errorf("the refusal took %v", took)
	}
	if err := c.Admin(t.Context(), "rooms/asked-once", nil); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("why a new room lives somewhere was answered %v, want status 503", err)
	}
}

// pageRefused waits until the page tells its user, in words, why the call has not begun.
func pageRefused(t *testing.T, p *participant) {
	t.Helper()
	eventually(t, time.Minute, p.name+" is told why it waits", func() error {
		var text, peer string
		if err := p.eval("document.body.innerText", &text); err != nil {
			return err
		}
		if err := p.eval("window.call?.peer ?? ''", &peer); err != nil {
			return err
		}
		if peer != "" {
			t.Fatalf("%s joined a new room without a store", p.name)
		}
		if !strings.Contains(text, "The room cannot be found just now") {
			return fmt.Errorf("the page says %q", text)
		}
		return nil
	})
}

// moment is when something was seen.
type moment struct {
	at  time.Time
	err error
}

// whenIn looks, in the page, until it has joined. Nobody touches the page meanwhile.
func whenIn(p *participant) <-chan moment {
	seen := make(chan moment, 1)
	go func() {
		var ms float64
		err := p.evalWithin(time.Minute, `new Promise((resolve) => {
		  const look = setInterval(() => { if (window.call?.peer) { clearInterval(look); resolve(Date.now()); } }, 10);
		})`, &ms)
		seen <- moment{time.UnixMilli(int64(ms)), err}
	}()
	return seen
}

// firstIn tries new rooms until the first join succeeds.
func firstIn(t *testing.T, c *devcluster.Cluster) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	every := time.NewTicker(50 * time.Millisecond)
	defer every.Stop()
	for i := 0; ; i++ {
		socket, _, err := joinAs(ctx, c, fmt.Sprintf("first-%d", i), fmt.Sprintf("eager-%d", i))
		if err == nil {
			at := time.Now()
			_ = socket.CloseNow()
			return at
		}
		if ctx.Err() != nil {
			t.Fatalf("no join in 30 s: %v", err)
		}
		<-every.C
	}
}

// soundOf is what each page has heard of the other, and when.
func soundOf(t *testing.T, pair []*participant) map[*participant]flowAt {
	t.Helper()
	heard := make(map[*participant]flowAt)
	for i, p := range pair {
		heard[p] = flowAt{p.mustStats(t).flowFrom(pair[1-i].id), time.Now()}
	}
	return heard
}

// flowAt is a flow at a moment.
type flowAt struct {
	flow

	at time.Time
}

// heardAll fails unless sound has come to each page all the while.
func heardAll(t *testing.T, pair []*participant, before map[*participant]flowAt) {
	t.Helper()
	for p, now := range soundOf(t, pair) {
		was := before[p]
		packets, seconds := now.packets-was.packets, now.at.Sub(was.at).Seconds()
		concealed, total := now.concealed-was.concealed, now.total-was.total
		if packets < 40*seconds || concealed > total/4 { // of 50 a second
			t.Errorf("%s: %g packets of sound in %.1f s, %g of %g samples made up", p.name, packets, seconds, concealed, total)
		}
	}
}

// gatherOn is gather with other names, and a stack that others use too.
func gatherOn(t *testing.T, c *devcluster.Cluster, stack *peer.Stack, room, name string, n int) *people {
	t.Helper()
	g := &people{room: room}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	for i := range n {
		token, err := c.Token(room, fmt.Sprintf("%s-%d", name, i))
		if err != nil {
			t.Fatal(err)
		}
		p, err := peer.New(peer.Options{URL: c.URL(), Token: token, Room: room, Stack: stack}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		g.peers = append(g.peers, p)
		wg.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Errorf("%s-%d of %s: %v", name, i, room, err)
			}
		})
	}
	return g
}
