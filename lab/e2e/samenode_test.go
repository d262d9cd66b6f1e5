package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestTheOnlyMediaNodeComesBack kills the only media node and starts it again at the same address. Its calls go on there without an attempt
// in vain, which would take 4 s: an attempt that the node refuses because it is not up yet costs nothing. One of the two people has the page
// through a proxy, under a path.
func TestTheOnlyMediaNodeComesBack(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1})
	people := []*participant{join(t, c.URL(), "only", "Ada", nil), join(t, underAPath(t, c.URL()), "only", "Alan", nil)}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	address, before := mediaOf(t, c, "sfu-1"), []callStats{people[0].mustStats(t), people[1].mustStats(t)}
	kill(t, c, "sfu-1")
	restart(t, c, "sfu-1")
	if again := mediaOf(t, c, "sfu-1"); again != address {
		t.Fatalf("it is back at %s, and was at %s", again, address)
	}
	for i, p := range people {
		after := p.awaitsMove(t, before[i], "restart")
		if m := after.Migrations[len(after.Migrations)-1]; m.Attempt > 1 && m.GapMs > 4000 {
			t.Errorf("%s: an attempt before was in vain: %+v", p.name, after.Migrations)
		}
	}
	var asked []string
	people[1].mustEval(t, `performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname).filter((path) => !path.startsWith('/call/'))`, &asked)
	if len(asked) > 0 {
		t.Errorf("below /call/ the page asks for %v", asked)
	}
}

// underAPath serves a page below /call/ of another address, by a proxy that takes the path off.
func underAPath(t *testing.T, page string) (address string) {
	t.Helper()
	to, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/call/", http.StripPrefix("/call", httputil.NewSingleHostReverseProxy(to)))
	proxy := httptest.NewServer(mux)
	t.Cleanup(proxy.Close)
	return proxy.URL + "/call/"
}
