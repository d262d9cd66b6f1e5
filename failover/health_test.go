package failover

import (
	"testing"
	"time"
)

// The silence of a node is counted while this process runs, and not while it is stopped.
func TestSilenceIsCountedWhileAwake(t *testing.T) {
	clock := &pauseAwareClock{}
	now := time.Unix(1_800_000_000, 0)
	run := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(detectEvery)
			clock.tick(now)
		}
	}
	clock.tick(now)
	h := newPeerHealth(clock)
	run(time.Second)
	h.heard()
	run(200 * time.Millisecond)
	now = now.Add(10 * time.Minute) // stopped
	clock.tick(now)
	run(100 * time.Millisecond)
	if silence, answer := h.silence(); silence != 300*time.Millisecond+longestTick || answer != 0 {
		t.Fatalf("silent for %s and unanswered for %s, want 300 ms and one long tick, and never asked", silence, answer)
	}
	if h.mayAsk(time.Second) || !h.mayAsk(400*time.Millisecond) {
		t.Fatal("400 ms are no second")
	}
}

// A question counts from the first since the last sign of life, however often it is repeated, and any
// sign ends it.
func TestQuestionsAreCountedFromTheFirst(t *testing.T) {
	clock := &pauseAwareClock{}
	now := time.Unix(1_800_000_000, 0)
	pass := func() { now = now.Add(detectEvery); clock.tick(now) }
	clock.tick(now)
	h := newPeerHealth(clock)
	answered := h.ask()
	if pass(); h.mayAsk(0) {
		t.Fatal("asked again while a question is out")
	}
	answered()
	if pass(); !h.mayAsk(0) {
		t.Fatal("not asked again")
	}
	h.ask()()
	if _, answer := h.silence(); answer != 2*detectEvery {
		t.Fatalf("unanswered for %s, want %s", answer, 2*detectEvery)
	}
	h.heard()
	if silence, answer := h.silence(); silence != 0 || answer != 0 {
		t.Fatalf("after a sign of life: silent for %s, unanswered for %s", silence, answer)
	}
}
