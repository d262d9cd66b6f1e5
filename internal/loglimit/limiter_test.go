package loglimit

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestUnloggedLinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1, 2)
		var said []int
		line := func() {
			if unlogged, ok := l.Next(); ok {
				said = append(said, unlogged)
			}
		}
		for range 7 {
			line()
		}
		<-time.After(time.Second)
		line()
		if !slices.Equal(said, []int{0, 0, 5}) {
			t.Fatalf("said %v", said)
		}
	})
}
