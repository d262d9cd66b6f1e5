package orchestrator

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// crashURL makes the test binary a signaling node that does one thing on that store and is
// killed on the way.
const crashURL = "HOLDFAST_TEST_CRASH_URL"

// crashRoom and crashOld are what that signaling node works on.
const crashRoom ring.RoomID = "crash"

func crashOld() pin.Pin { return pinAt("dead", 1, 5000, 1) }

// TestCrashingSignalingNode is not a test by itself: TestKilledSignalingNodeLeavesNoOrphan runs it
// as a process of its own.
func TestCrashingSignalingNode(t *testing.T) {
	url := os.Getenv(crashURL)
	if url == "" {
		return
	}
	store, err := redisstore.Open(url, quiet)
	if err != nil {
		t.Fatal(err)
	}
	signaling := New(store, fixed(viewOf(sfu("a", 1), sfu("b", 1))), &addresses{}, patient(), quiet)
	if _, ok, _ := store.Get(t.Context(), crashRoom); ok {
		_, err = signaling.Rehome(t.Context(), crashRoom, crashOld(), headroom.Room{})
	} else {
		_, err = signaling.Place(t.Context(), crashRoom, headroom.Room{})
	}
	t.Fatalf("the signaling survived its failpoint: %v", err)
}

// A signaling node is killed at each step of its own. The next one ends on one live pin, and a third agrees.
func TestKilledSignalingNodeLeavesNoOrphan(t *testing.T) {
	for _, c := range []struct {
		failpoint string
		pinned    bool // a pin of a dead node stands at first
		left      func(pin.Pin) bool
		epoch     uint64 // of the pin that stands in the end; 0 for a fresh one
	}{
		{"place.after-claim", false, func(p pin.Pin) bool { return p.Node != "" && p.Node != "dead" }, 0},
		{"rehome.before-swap", true, func(p pin.Pin) bool { return p == crashOld() }, 5001},
		{"rehome.after-swap", true, func(p pin.Pin) bool { return p.Fence.Epoch == 5001 && p.Node != "dead" }, 5001},
	} {
		t.Run(c.failpoint, func(t *testing.T) {
			storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
				store := onRedis(t, server)
				if c.pinned {
					if _, _, err := store.Claim(t.Context(), crashRoom, crashOld(), ""); err != nil {
						t.Fatal(err)
					}
				}
				crash(t, server.URL, c.failpoint)
				left, _, err := store.Get(t.Context(), crashRoom)
				if err != nil || !c.left(left) {
					t.Fatalf("the killed signaling node left %v, %v", left, err)
				}
				var ends [2]pin.Pin
				for i := range ends {
					signaling := New(onRedis(t, server), fixed(viewOf(sfu("a", 1), sfu("b", 1))), &addresses{}, patient(), quiet)
					if c.pinned {
						ends[i], err = signaling.Rehome(t.Context(), crashRoom, crashOld(), headroom.Room{})
					} else {
						ends[i], err = signaling.Place(t.Context(), crashRoom, headroom.Room{})
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if ends[0] != ends[1] || ends[0].Node == "dead" || c.epoch != 0 && ends[0].Fence.Epoch != c.epoch || c.epoch == 0 && ends[0] != left {
					t.Errorf("the next signalingNodes ended on %v and %v, the killed one left %v", ends[0], ends[1], left)
				}
			})
		})
	}
}

// crash runs TestCrashingSignalingNode and sees it die of SIGKILL at the failpoint.
func crash(t *testing.T, url, at string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCrashingSignalingNode$")
	cmd.Env = append(os.Environ(), crashURL+"="+url, failpoint.Variable+"="+at+"=exit")
	output, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || ctx.Err() != nil {
		t.Fatalf("the signaling ended with %v, want SIGKILL at %s\n%s", err, at, output)
	}
}
