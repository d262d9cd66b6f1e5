package failover

import (
	"testing"
	"time"
)

// The silence of a node is counted while this process runs, and not while it is stopped.
func TestSilenceIsCountedWhileAwake(t *testing.T) {
	clock := &awake{}
	now := time.Unix(1_800_000_000, 0)
	run := func(d time.Duration) {
		for end := now.Add(d); now.Before(end); {
			now = now.Add(attendEvery)
			clock.tick(now)
		}
	}
	clock.tick(now)
	l := newLife(clock)
	run(time.Second)
	l.sign()
	run(200 * time.Millisecond)
	now = now.Add(10 * time.Minute) // stopped
	clock.tick(now)
	run(100 * time.Millisecond)
	if beats, answer := l.silence(); beats != 300*time.Millisecond+longestTick || answer != 0 {
		t.Fatalf("silent for %s and unanswered for %s, want 300 ms and one long tick, and never asked", beats, answer)
	}
	if l.quiet(time.Second) || !l.quiet(400*time.Millisecond) {
		t.Fatal("400 ms are no second")
	}
}

// A question counts from the first since the last sign of life, however often it is repeated, and any
// sign ends it.
func TestQuestionsAreCountedFromTheFirst(t *testing.T) {
	clock := &awake{}
	now := time.Unix(1_800_000_000, 0)
	pass := func() { now = now.Add(attendEvery); clock.tick(now) }
	clock.tick(now)
	l := newLife(clock)
	answered := l.ask()
	if pass(); l.quiet(0) {
		t.Fatal("asked again while a question is out")
	}
	answered()
	if pass(); !l.quiet(0) {
		t.Fatal("not asked again")
	}
	l.ask()()
	if _, answer := l.silence(); answer != 2*attendEvery {
		t.Fatalf("unanswered for %s, want %s", answer, 2*attendEvery)
	}
	l.sign()
	if beats, answer := l.silence(); beats != 0 || answer != 0 {
		t.Fatalf("after a sign of life: silent for %s, unanswered for %s", beats, answer)
	}
}
