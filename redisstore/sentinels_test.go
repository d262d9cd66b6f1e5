package redisstore

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// fakeSentinel answers as one does, or not at all.
type fakeSentinel struct {
	address string
	frozen  atomic.Bool
	asked   atomic.Int64
	greeted atomic.Int64

	mu     sync.Mutex
	master string
	epoch  int
	others []string
}

func newFakeSentinel(t *testing.T, master string, epoch int) *fakeSentinel {
	t.Helper()
	f, ended := &fakeSentinel{master: master, epoch: epoch}, make(chan struct{})
	listener, err := server.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(ended); listener.Close() })
	f.address = listener.Addr().String()
	err = listener.Register("SENTINEL", func(c *server.Peer, _ string, args []string) {
		f.asked.Add(1)
		if f.frozen.Load() {
			<-ended
			return
		}
		f.answer(c, strings.ToLower(args[0]))
	})
	if err == nil {
		err = listener.Register("INFO", func(c *server.Peer, _ string, _ []string) {
			f.greeted.Add(1)
			c.WriteBulk("run_id:a Sentinel's\r\n")
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fakeSentinel) answer(c *server.Peer, question string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch question {
	case "get-master-addr-by-name":
		host, port, _ := net.SplitHostPort(f.master)
		c.WriteStrings([]string{host, port})
	case "master":
		c.WriteStrings([]string{"config-epoch", strconv.Itoa(f.epoch)})
	case "sentinels":
		c.WriteLen(len(f.others))
		for _, other := range f.others {
			host, port, _ := net.SplitHostPort(other)
			c.WriteStrings([]string{"ip", host, "port", port})
		}
	default:
		c.WriteError("ERR unknown question")
	}
}

func (f *fakeSentinel) names(master string, epoch int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.master, f.epoch = master, epoch
}

func sentinelURL(all ...*fakeSentinel) storetest.Server {
	var addresses []string
	for _, f := range all {
		addresses = append(addresses, f.address)
	}
	return storetest.Server{URL: "redis+sentinel://" + strings.Join(addresses, ",") + "/house"}
}

// claimSoon claims with the time that a join has, until that succeeds.
func claimSoon(t *testing.T, what string, store *Store) {
	t.Helper()
	testkit.Eventually(t, what, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, _, err := store.Claim(ctx, "r", storetest.At("a", 1000, 1), "")
		return err == nil
	})
}

// Sentinels freeze one after another, and each time all connections to the master break: as long as one Sentinel is well, the
// master is found. None is greeted as a server of the store is, whose run id and clock count.
func TestFrozenSentinelsTakeNoStoreAway(t *testing.T) {
	master := miniredis.RunT(t)
	all := []*fakeSentinel{newFakeSentinel(t, master.Addr(), 1), newFakeSentinel(t, master.Addr(), 1), newFakeSentinel(t, master.Addr(), 1)}
	all[0].others, all[1].others = []string{all[2].address}, []string{all[2].address}
	store := open(t, sentinelURL(all[:2]...)) // it learns of the third
	breakAll := func() {
		t.Helper()
		master.Close()
		if err := master.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	claimSoon(t, "the first claim", store)
	for frozen, f := range all[:2] {
		f.frozen.Store(true)
		breakAll()
		claimSoon(t, strconv.Itoa(frozen+1)+" of three Sentinels frozen: a claim", store)
	}
	for i, f := range all {
		if f.greeted.Load() > 0 {
			t.Errorf("Sentinel %d was greeted as a server of the store", i)
		}
		if f.frozen.Load() && f.asked.Load() > 1000 {
			t.Errorf("frozen Sentinel %d was asked %d times", i, f.asked.Load())
		}
	}
}

// A Sentinel that thaws names the former master. It is not followed while another knows better; when all have been set up anew,
// with young epochs, they are.
func TestASentinelThatIsBehindIsNotFollowed(t *testing.T) {
	former, present := miniredis.RunT(t), miniredis.RunT(t)
	behind, knows := newFakeSentinel(t, former.Addr(), 1), newFakeSentinel(t, present.Addr(), 2)
	store := open(t, sentinelURL(behind, knows))
	find := func() string {
		address, err := store.sentinels.find(within(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return address
	}
	testkit.Eventually(t, "the present master to be found", func() bool { return find() == present.Addr() })
	for range 50 {
		if got := find(); got != present.Addr() {
			t.Fatalf("%s is followed, the former master", got)
		}
	}
	claimSoon(t, "a claim at the present master", store)
	knows.names(former.Addr(), 3) // it fails over again
	testkit.Eventually(t, "the other master to be followed", func() bool { return find() == former.Addr() })
	claimSoon(t, "a claim at the other master", store)
	if !former.Exists(pinKey("r")) {
		t.Error("the claim went over a connection to the former master")
	}
	behind.names(present.Addr(), 0)
	knows.names(present.Addr(), 0)
	testkit.Eventually(t, "Sentinels that were set up anew to be followed", func() bool { return find() == present.Addr() })
}
