package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/operator"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/web"
)

// TestTheOperatorsPage looks at a call from the operator's page while its node dies, drains another node from there, and finds that
// without an operator's token there is nothing to see.
func TestTheOperatorsPage(t *testing.T) {
	t.Parallel()
	needChromium(t, 3)
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 2})
	room := roomOn(t, "sfu-1", "hall")
	people := joinAll(t, c.URL(), room, nil, "Ada", "Alan")
	allDecodeAll(t, time.Minute, people)
	op := openPage(t, "the operator", c.URL()+"operator/")
	op.sees(t, "both media nodes", `document.querySelectorAll('#nodes-rows .row:not([hidden])[data-media^="sfu-"][data-state="up"]').length === 2`)
	op.sees(t, "the room and its people", fmt.Sprintf(`[...document.querySelectorAll('#rooms-rows .row')].some((row) => row.dataset.room === %q && row.dataset.on === 'sfu-1' && row.children[2].textContent === '2')`, room))
	op.mustEval(t, fmt.Sprintf(`([...document.querySelectorAll('#rooms-rows .row')].find((row) => row.dataset.room === %q).querySelector('button').click(), true)`, room), nil)
	op.sees(t, "who is in the room, where and how", `[...document.querySelectorAll('#sheet .person')].filter((person) => /at signaling-\d · UDP/.test(person.textContent) && person.querySelector('.stream.gets[data-state="on"]')).length === 2`)
	op.sees(t, "why the room is there", `document.querySelector('.walk .step.holds .name').textContent === 'sfu-1'`)
	op.mustEval(t, `(document.querySelector('#sheet-close').click(), true)`, nil)
	t.Run("its node dies", func(t *testing.T) { operatorSeesTheFailover(t, c, op, room) })
	t.Run("a node drains", func(t *testing.T) { operatorDrains(t, c, op) })
	t.Run("no token", func(t *testing.T) { nobodySeesTheOperatorsPage(t, c, op) })
}

// operatorSeesTheFailover notes in the page when evidence, rooms and gaps are seen.
func operatorSeesTheFailover(t *testing.T, c *devcluster.Cluster, op *page, room string) {
	op.mustEval(t, `(() => {
	  globalThis.seen = {};
	  new MutationObserver(() => {
	    const card = document.querySelector('.failover');
	    if (!card) return;
	    if (card.querySelector('.evidence')) seen.evidence ??= Date.now();
	    if (card.querySelector('.rooms-named')) seen.rooms ??= Date.now();
	    // Each signaling node tells of its own people.
	    if (card.querySelector('.outcome[data-state="good"]')?.textContent.startsWith('2 of 2') && card.querySelector('.gaps .dot')) seen.gaps ??= Date.now();
	  }).observe(document.querySelector('#timeline'), { childList: true, subtree: true });
	  return true;
	})()`, nil)
	killed := time.Now()
	kill(t, c, "sfu-1")
	op.sees(t, "that everybody is back", `seen.gaps`)
	var seen struct{ Evidence, Rooms, Gaps int64 }
	op.mustEval(t, "seen", &seen)
	after := func(ms int64) time.Duration { return time.UnixMilli(ms).Sub(killed).Round(time.Millisecond) }
	t.Logf("after the kill the page showed the evidence in %v, the rooms in %v, everybody's gaps in %v", after(seen.Evidence), after(seen.Rooms), after(seen.Gaps))
	var card string
	op.mustEval(t, "document.querySelector('.failover').textContent", &card)
	op.sees(t, "the dead node among the nodes", `document.querySelector('#nodes-rows .row[data-state="dead"] .open')?.textContent === 'sfu-1'`)
	for _, part := range []string{"sfu-1 died", "2 of 2 back, worst gap", "Evidence: ", room + " → sfu-2"} {
		if !strings.Contains(card, part) {
			t.Errorf("the page says of the failover %q, without %q", card, part)
		}
	}
	op.sees(t, "the other node as the room's", fmt.Sprintf(`[...document.querySelectorAll('#rooms-rows .row')].some((row) => row.dataset.room === %q && row.dataset.on === 'sfu-2')`, room))
}

// operatorDrains begins and ends a drain, each after a question.
func operatorDrains(t *testing.T, c *devcluster.Cluster, op *page) {
	restart(t, c, "sfu-1")
	presses := func(act, title string) {
		t.Helper()
		op.sees(t, "the node", `document.querySelector('#nodes-rows .row[data-media="sfu-1"] .open')`)
		op.mustEval(t, `(document.querySelector('#nodes-rows .row[data-media="sfu-1"] .open').click(), true)`, nil)
		op.sees(t, act, fmt.Sprintf(`[...document.querySelectorAll('#sheet .acts button')].some((button) => !button.hidden && button.textContent === %q)`, act))
		op.mustEval(t, fmt.Sprintf(`([...document.querySelectorAll('#sheet .acts button')].find((button) => button.textContent === %q).click(), true)`, act), nil)
		op.sees(t, "the question", fmt.Sprintf(`document.querySelector('#question').open && document.querySelector('#question-title').textContent === %q`, title))
		op.mustEval(t, `(document.querySelector('#question-yes').click(), document.querySelector('#sheet-close').click(), true)`, nil)
	}
	op.sees(t, "the node again", `document.querySelector('#nodes-rows .row[data-media="sfu-1"][data-state="up"]')`)
	presses("Drain", "Drain sfu-1?")
	op.sees(t, "the drain", `document.querySelector('#nodes-rows .row[data-media="sfu-1"][data-state="draining"]') && [...document.querySelectorAll('#timeline .event')].some((event) => event.textContent.includes('sfu-1 drains'))`)
	presses("Take rooms again", "Let sfu-1 take rooms again?")
	op.sees(t, "that it takes rooms", `document.querySelector('#nodes-rows .row[data-media="sfu-1"][data-state="up"]')`)
}

func nobodySeesTheOperatorsPage(t *testing.T, c *devcluster.Cluster, op *page) {
	op.mustEval(t, `(setTimeout(() => document.querySelector('#sign-out').click()), true)`, nil)
	const nothing = `!document.querySelector('#sign-in').hidden && document.querySelector('#board').hidden && document.querySelectorAll('.row, .failover, .event').length === 0`
	op.sees(t, "that it needs a token", nothing)
	token, err := access.Mint(c.Access().Key, c.Access().Secret, access.Everything("ada", "hall"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	op.mustEval(t, fmt.Sprintf(`(document.querySelector('#token').value = %q, document.querySelector('#token-form').requestSubmit(), true)`, token), nil)
	op.sees(t, "that a token for a room is none for the cluster", nothing+` && document.querySelector('#sign-in-problem').textContent.includes('another token')`)
}

const (
	manyNodes = 1000
	manyRooms = 100_000
)

// hugeCluster is a cluster of many nodes and rooms that nobody runs.
type hugeCluster struct{ view *cluster.View }

func newHugeCluster() *hugeCluster {
	view := &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}, Signaling: map[ring.NodeID]cluster.Node{}, Settled: true}
	names := make([]ring.NodeID, manyNodes)
	for i := range names {
		id := ring.NodeID(fmt.Sprintf("sfu-%d", i+1))
		names[i] = id
		load := cluster.Load{
			Rooms: manyRooms / manyNodes, Peers: 3 * manyRooms / manyNodes, CeilingBitsPerSecond: 800e6, CeilingPacketsPerSecond: 60_000,
			EgressBitsPerSecond: 8e6 * uint64(rand.IntN(100)), EgressPacketsPerSecond: 500 * uint64(rand.IntN(100)), //nolint:gosec // any load will do
		}
		view.Nodes[id] = cluster.Node{ID: id, Boot: pin.BootID("1769000000000-" + id), Role: cluster.RoleSFU, Control: "10.0.0.1:7000", Media: "10.0.0.1:7001", Version: "0.1.0+65fd839c", Load: load}
	}
	view.Ring = ring.New(names)
	return &hugeCluster{view: view}
}

func (c *hugeCluster) View() *cluster.View                   { return c.view }
func (c *hugeCluster) Stalled(pin.BootID) (stalled, all int) { return 0, 0 }

func (c *hugeCluster) Ask(context.Context, []string) ([]presence.Status, error) { return nil, nil }
func (c *hugeCluster) List(context.Context, uint64) ([]presence.Status, uint64, error) {
	return nil, 0, nil
}
func (c *hugeCluster) Count(context.Context) (int64, error) { return 3 * manyRooms, nil }

// rooms are asked of nobody.
func (c *hugeCluster) rooms(context.Context) ([]operator.Room, []ring.NodeID) {
	rooms := make([]operator.Room, manyRooms)
	for i := range rooms {
		rooms[i] = operator.Room{
			Room: ring.RoomID(fmt.Sprintf("room-%06d", i)), Node: ring.NodeID(fmt.Sprintf("sfu-%d", i%manyNodes+1)), People: 3, Connected: 3,
			EgressBitsPerSecond: uint64(i) * 1000,
		}
	}
	return rooms, []ring.NodeID{}
}

// TestTheOperatorsPageOfAThousandNodes shows 1,000 nodes and 100,000 rooms, scrolls through them, and searches. It logs how soon the page
// is painted, and how many frames were long.
func TestTheOperatorsPageOfAThousandNodes(t *testing.T) {
	t.Parallel()
	needChromium(t, 1)
	many := newHugeCluster()
	keys, err := access.ParseKeyring("key:" + strings.Repeat("s", 40))
	if err != nil {
		t.Fatal(err)
	}
	api := rest.New(rest.Deps{
		Config: rest.Config{Node: "signaling-1"}, Keys: keys, Views: many, Hub: many, Users: many, Loads: &operator.History{}, Static: web.Static(),
		Panics: panics.New(), Log: quiet(),
	}).Handler()
	var list operator.Rooms
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("/api/v1/room-list", func(w http.ResponseWriter, r *http.Request) {
		q, err := rest.PageOf(r.URL.Query())
		if err != nil {
			reply.Refuse(w, err)
			return
		}
		reply.JSON(w, http.StatusOK, list.Page(r.Context(), q, many.rooms))
	})
	mux.HandleFunc("/api/v1/events", func(w http.ResponseWriter, _ *http.Request) {
		reply.JSON(w, http.StatusOK, map[string]any{"events": []any{}, "next": "", "more": false})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	token, err := keys.Mint("", access.Operator("root"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	tab, op := openTab(t, "the operator")
	if err := chromedp.Do(tab, chromedp.Navigate(server.URL+"/operator/#token="+token)); err != nil {
		t.Fatal(err)
	}
	op.sees(t, "all nodes and rooms", `document.querySelector('#nodes-note').textContent.startsWith('1,000 media nodes') && document.querySelector('#rooms-note').textContent === '100,000 rooms' && document.querySelector('#rooms-rows .row .who')?.textContent === 'room-099999'`)
	var measured struct {
		PaintMs, RowsMs float64
		Elements        int
		Frames, Long    int
	}
	op.mustEval(t, `(async () => {
	  const rows = performance.getEntriesByType('resource').filter(({ name }) => /room-list|nodes$/.test(name)).map(({ responseEnd }) => responseEnd);
	  const scroller = document.querySelector('#rooms-rows');
	  let [frames, long, last] = [0, 0, performance.now()];
	  await new Promise((resolve) => {
	    const step = (now) => {
	      frames++;
	      if (now - last > 50) long++;
	      last = now;
	      scroller.scrollTop = frames < 120 ? scroller.scrollTop + 90 : Math.random() * scroller.scrollHeight;
	      document.querySelector('#nodes-rows').scrollTop += 60;
	      if (frames < 180) requestAnimationFrame(step);
	      else resolve();
	    };
	    requestAnimationFrame(step);
	  });
	  const paint = performance.getEntriesByType('paint').find(({ name }) => name === 'first-contentful-paint')?.startTime ?? -1;
	  return { paintMs: paint, rowsMs: Math.min(...rows), elements: document.querySelectorAll('*').length, frames, long };
	})()`, &measured)
	t.Logf("first paint after %.0f ms, the first rows after %.0f ms; %d of %d frames of scrolling were longer than 50 ms; %d elements",
		measured.PaintMs, measured.RowsMs, measured.Long, measured.Frames, measured.Elements)
	if measured.Elements > 2000 {
		t.Errorf("the document has %d elements", measured.Elements)
	}
	op.mustEval(t, `(document.querySelector('#rooms-search').value = 'ROOM-0777', document.querySelector('#rooms-search').dispatchEvent(new Event('input')), true)`, nil)
	op.sees(t, "what it searches for", `document.querySelector('#rooms-note').textContent === '100 of 100,000 rooms' && document.querySelector('#rooms-rows .row .who').textContent === 'room-077799'`)
	op.mustEval(t, `(document.querySelector('#nodes-search').value = 'sfu-1000', document.querySelector('#nodes-search').dispatchEvent(new Event('input')), true)`, nil)
	op.sees(t, "one node", `[...document.querySelectorAll('#nodes-rows .row:not([hidden])')].map((row) => row.dataset.media).join() === 'sfu-1000'`)
}
