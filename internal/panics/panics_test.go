package panics

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCatch(t *testing.T) {
	if caught := Catch(func() {}); caught != nil {
		t.Fatalf("caught %v of nothing", caught)
	}
	caught := Catch(func() { panic("of a test") })
	if caught == nil || caught.Fault != "of a test" || !strings.Contains(string(caught.Stack), "TestCatch") {
		t.Fatalf("caught %+v", caught)
	}
	if _, ok := errors.AsType[*Error](error(caught)); !ok || caught.Error() != "panic: of a test" {
		t.Fatalf("it is the error %v", caught)
	}
}

func TestReportsAreCountedAndBounded(t *testing.T) {
	var said bytes.Buffer
	g := New()
	log := slog.New(slog.NewTextHandler(&said, nil)).With("peer", "eve")
	for range 1000 {
		g.Report(log, Catch(func() { panic("of a test") }), "a message broke its handling")
	}
	if n := strings.Count(said.String(), "peer=eve"); n < 1 || n > 2*lineBurst {
		t.Errorf("%d lines of 1000 were logged", n)
	}
	if !strings.Contains(said.String(), "of a test") || g.Count() != 1000 {
		t.Errorf("%d were counted, and the log begins with %.300s", g.Count(), said.String())
	}
}

func TestTwoStrikesRefuseForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		strike := func(n int) {
			for range n {
				g.Strike("eve")
			}
		}
		strike(1)
		if g.Refuses("eve") {
			t.Fatal("refused after one")
		}
		strike(1)
		if !g.Refuses("eve") || g.Refuses("ada") {
			t.Fatal("the wrong one is refused")
		}
		<-time.After(strikeLife)
		if g.Refuses("eve") {
			t.Fatal("refused for ever")
		}
		strike(1)
		if g.Refuses("eve") {
			t.Fatal("what was long ago counts")
		}
	})
}

func TestStrikesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New()
		for i := range rememberedPeers + 10 {
			g.Strike(strconv.Itoa(i))
		}
		if n := len(g.strikes); n != rememberedPeers {
			t.Fatalf("%d are remembered", n)
		}
		<-time.After(strikeLife)
		g.Strike("eve")
		g.Strike("eve")
		if !g.Refuses("eve") || len(g.strikes) != 1 {
			t.Fatalf("%d are remembered, or eve is not", len(g.strikes))
		}
	})
}

func TestALoopSurvivesItsRounds(t *testing.T) {
	var said bytes.Buffer
	g, log := New(), slog.New(slog.NewTextHandler(&said, nil))
	if g.Catch(log, "a round broke", func() {}) || g.Count() != 0 {
		t.Fatal("what returned counts")
	}
	if !g.Catch(log, "a round broke", func() { panic("of a test") }, "room", "lobby") || g.Count() != 1 || !strings.Contains(said.String(), "room=lobby") {
		t.Fatalf("%d were counted, and the log has %.300s", g.Count(), said.String())
	}
}
