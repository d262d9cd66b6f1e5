//go:build shots

package e2e

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

var shotsDir = flag.String("shots", "", "take pictures of the page into this directory: go test -tags shots ./lab/e2e -run TestShots -count 1 -args -shots DIR")

//go:embed testdata/people.js
var peopleScript string

// studio takes pictures of the page, as one person of a room full of drawn ones.
type studio struct {
	t       *testing.T
	cluster *devcluster.Cluster
	dir     string
	browser context.Context // of the person whose page is pictured
	crowd   *page
}

// TestShots is a command in the form of a test: it writes the pictures that are looked at
// after a change of the page, and two of them into the README.
func TestShots(t *testing.T) {
	if *shotsDir == "" {
		t.Fatal("say where to put the pictures: -args -shots DIR")
	}
	needChromium(t)
	dir, err := filepath.Abs(*shotsDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := &studio{t: t, cluster: startCluster(t, devcluster.Options{}), dir: dir}
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), chromiumFlags(t.TempDir())...)
	t.Cleanup(cancel)
	browser, cancelBrowser := chromedp.NewContext(alloc)
	t.Cleanup(func() { _ = chromedp.Cancel(browser); cancelBrowser() })
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	s.browser = browser
	s.lobbies()
	s.calls()
	s.crowds()
}

// lobbies pictures everything that can be seen before a call.
func (s *studio) lobbies() {
	s.shoot("lobby", desk, url.Values{"name": {"Ada Lovelace"}}, ready, nil)
	s.shoot("lobby-light", bright(desk), url.Values{"name": {"Ada Lovelace"}}, ready, nil)
	s.shoot("lobby-phone", phone, url.Values{"name": {"Ada Lovelace"}}, ready, nil)
	s.shoot("permission", desk, url.Values{"name": {"Ada Lovelace"}, "fault": {"asking"}}, `document.querySelector('.asking')`, nil)
	for _, fault := range []string{"denied", "missing", "busy"} {
		s.shoot("error-"+fault, desk, url.Values{"name": {"Ada Lovelace"}, "fault": {fault}}, `document.querySelector('#preview-note').textContent.includes('join without')`, nil)
	}
	for _, fault := range []string{"unreachable", "room_full", "token_expired", "superseded", "kicked", "no_nodes"} {
		s.shoot("error-"+fault, desk, url.Values{"name": {"Ada Lovelace"}, "fault": {fault}, "autojoin": {"1"}}, `!document.querySelector('#problem').hidden && document.querySelector('#preview').videoWidth`, nil)
	}
}

// people are those of the largest room, without oneself.
var people24 = []string{
	"Grace Hopper", "Alan Turing", "Hedy Lamarr", "Edsger Dijkstra", "Radia Perlman", "Barbara Liskov",
	"Donald Knuth", "Margaret Hamilton", "Tony Hoare", "Frances Allen", "Ken Thompson",
	"Lynn Conway", "Leslie Lamport", "Karen Spärck Jones", "Niklaus Wirth", "Jean Bartik", "Dennis Ritchie", "Adele Goldberg",
	"Robin Milner", "Sophie Wilson", "Butler Lampson", "Anita Borg", "Vint Cerf", "Shafi Goldwasser",
}

// calls pictures rooms of several sizes, what happens in them, and a move.
func (s *studio) calls() {
	in := func(room string) url.Values {
		return url.Values{"name": {"Ada Lovelace"}, "room": {room}, "autojoin": {"1"}}
	}
	s.shoot("call-1", desk, in("solo"), inCall(1), nil)
	s.fill("pair", 1)
	s.shoot("call-2", desk, in("pair"), inCall(2), nil)
	s.fill("design-review", 4)
	talk := func(tab *page) {
		for i, line := range []string{
			`calls[0].say('Morning! Can everybody see the agenda?')`, `calls[2].say('Yes. I would start with the failover.')`,
			`calls[2].say('<b>Two</b> nodes are enough for that.')`,
		} {
			s.crowd.mustEval(s.t, line, nil)
			s.until(tab, fmt.Sprintf(`document.querySelectorAll('.line').length > %d`, i))
		}
		tab.mustEval(s.t, `call.say('Then let us kill one and see.').id`, nil)
		tab.mustEval(s.t, `(document.querySelector('.controls [data-panel=chat]').click(), true)`, nil)
		s.until(tab, `document.querySelectorAll('.line').length >= 4 && !document.querySelector('[data-state=sending]')`)
	}
	s.shoot("call-5", desk, in("design-review"), inCall(5), nil)
	s.shoot("call-5-light", bright(desk), in("design-review"), inCall(5), nil)
	s.shoot("chat", desk, in("design-review"), inCall(5), talk)
	s.shoot("people", desk, in("design-review"), inCall(5), func(tab *page) {
		tab.mustEval(s.t, `(document.querySelector('.controls [data-panel=people]').click(), true)`, nil)
		s.until(tab, `document.querySelector('.person .quality')`)
	})
	s.shoot("phone", phone, in("design-review"), inCall(5), nil)
	s.shoot("phone-chat", phone, in("design-review"), inCall(5), talk)
	s.shoot("settings", desk, in("design-review"), inCall(5), func(tab *page) {
		tab.mustEval(s.t, `(document.querySelector('.controls [data-panel=settings]').click(), true)`, nil)
	})
	narrow := in("design-review")
	narrow.Set("fault", "narrow")
	paused := func(tab *page) {
		tab.mustEval(s.t, `(holdBack(), true)`, nil)
		s.until(tab, `document.querySelector('.tile.paused')`)
	}
	s.shoot("paused", desk, narrow, inCall(5), paused)
	s.shoot("paused-phone", bright(phone), narrow, inCall(5), paused)
	s.crowd.mustEval(s.t, `calls[0].replaceTrack('screen', drawnSlide().getVideoTracks()[0]).then(() => true)`, nil)
	large := `document.querySelector('.tile.large:not(.dark) video')?.videoWidth > 900`
	s.shoot("screen", desk, in("design-review"), large, nil)
	s.shoot("phone-screen", phone, in("design-review"), large, nil)
	s.crowd.mustEval(s.t, `calls[0].replaceTrack('screen', null).then(() => true)`, nil)
	s.shoot("migration", desk, in("design-review"), inCall(5), func(tab *page) {
		tab.mustEval(s.t, `(document.querySelector('#kill').click(), true)`, nil)
		s.until(tab, `document.querySelectorAll('#status-moves li').length > 0`)
		s.until(tab, inCall(5))
	})
}

// crowds pictures a large room.
func (s *studio) crowds() {
	in := url.Values{"name": {"Ada Lovelace"}, "room": {"all-hands"}, "autojoin": {"1"}}
	s.fill("all-hands", 11)
	s.shoot("call-12", desk, in, inCall(12), nil)
	s.shoot("phone-12", phone, in, inCall(8), nil)
	s.fill("all-hands", 24)
	s.shoot("call-25", wide, in, inCall(25), nil)
	s.shoot("call-25-desk", desk, in, inCall(16), nil)
	in.Set("room", strings.TrimSpace(strings.Repeat("a room with a long name ", 5))) // as the page does
	in.Set("name", "Adolph Blaine Charles David Earl Wolfeschlegelsteinhausen")
	s.fillWith(in.Get("room"), []string{"Wolfeschlegelsteinhausenbergerdorff", "محمد بن موسى الخوارزمي أبو عبد الله", "Ada 🦊 of the very long and winding name", "李"})
	s.shoot("names", desk, in, inCall(5), func(tab *page) {
		tab.mustEval(s.t, `(document.querySelector('.controls [data-panel=people]').click(), true)`, nil)
	})
	s.shoot("names-phone", bright(phone), in, inCall(5), nil)
	s.shoot("landscape", landscape, in, inCall(5), nil)
}

// ready is when the lobby shows its picture.
const ready = `document.querySelector('#preview').videoWidth > 0`

// inCall is when so many tiles stand and every picture that is on is there.
func inCall(tiles int) string {
	return fmt.Sprintf(`(() => {
	  const shown = [...document.querySelectorAll('.tile:not([hidden])')];
	  return shown.length >= %d && globalThis.call?.state === 'live' && shown.every((tile) => {
	    const entry = call.roster.find(({ peer }) => peer === tile.dataset.peer);
	    return tile.dataset.peer !== call.peer && entry?.videoMuted || (!tile.classList.contains('dark') && tile.querySelector('video').videoWidth > 0);
	  });
	})()`, tiles)
}

// screenSize is what the page is shown on.
type screenSize struct {
	width, height int64
	scale         float64
	mobile, light bool
}

var (
	desk      = screenSize{width: 1280, height: 800, scale: 1}
	wide      = screenSize{width: 1920, height: 1080, scale: 1}
	phone     = screenSize{width: 390, height: 844, scale: 2, mobile: true}
	landscape = screenSize{width: 844, height: 390, scale: 2, mobile: true}
)

func bright(size screenSize) screenSize {
	size.light = true
	return size
}

// fill lets drawn people join a room, and those of the room before leave.
func (s *studio) fill(room string, people int) {
	s.t.Helper()
	s.fillWith(room, people24[:people])
}

func (s *studio) fillWith(room string, people []string) {
	s.t.Helper()
	if s.crowd == nil {
		s.crowd = s.open(s.newBrowser(), desk, url.Values{})
	}
	s.crowd.mustEval(s.t, `(globalThis.calls ?? []).map((call) => call.leave()).length`, nil)
	var joined int
	names := "'" + strings.Join(people, "', '") + "'"
	if err := s.crowd.evalWithin(time.Minute, fmt.Sprintf("crowd('%s', [%s])", room, names), &joined); err != nil {
		s.t.Fatal(err)
	}
}

// newBrowser is a process of its own: pages in the background draw nothing.
func (s *studio) newBrowser() context.Context {
	s.t.Helper()
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), chromiumFlags(s.t.TempDir())...)
	s.t.Cleanup(cancel)
	browser, cancelBrowser := chromedp.NewContext(alloc)
	s.t.Cleanup(func() { _ = chromedp.Cancel(browser); cancelBrowser() })
	return browser
}

// open opens the page on a screen.
func (s *studio) open(tab context.Context, size screenSize, query url.Values) *page {
	s.t.Helper()
	if !query.Has("room") {
		query.Set("room", "design-review")
	}
	scheme := "dark"
	if size.light {
		scheme = "light"
	}
	_, err := chromedp.Call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: peopleScript})
	if err == nil {
		_, err = chromedp.Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
	}
	if err == nil {
		_, err = chromedp.Call(tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: size.width, Height: size.height, DeviceScaleFactor: size.scale, Mobile: size.mobile,
		})
	}
	if err == nil {
		_, err = chromedp.Call(tab, cdppage.Navigate, cdppage.NavigateParams{URL: strings.TrimSuffix(s.cluster.URL(), "/") + "/?" + query.Encode()})
	}
	if err != nil {
		s.t.Fatalf("open the page: %v", err)
	}
	p := &page{name: query.Get("name")}
	p.run = func(limit context.Context, script string) (string, error) {
		within, cancel := context.WithCancel(tab)
		defer context.AfterFunc(limit, cancel)()
		defer cancel()
		return chromedp.Run(within, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	}
	go p.listen(chromedp.Console(tab))
	return p
}

// until waits for a condition in the page.
func (s *studio) until(p *page, condition string) {
	s.t.Helper()
	eventually(s.t, 40*time.Second, condition, func() error {
		var holds bool
		if err := p.eval("Boolean("+condition+")", &holds); err != nil || !holds {
			return fmt.Errorf("not yet (%w)\n%s", err, p.consoleText())
		}
		return nil
	})
}

// shoot pictures the page once the condition holds and act is done.
func (s *studio) shoot(name string, size screenSize, query url.Values, condition string, act func(tab *page)) {
	s.t.Run(name, func(t *testing.T) {
		outer := s.t
		s.t = t
		defer func() { s.t = outer }()
		tab, closeTab := chromedp.NewContext(s.browser)
		defer closeTab()
		p := s.open(tab, size, query)
		s.until(p, condition)
		if act != nil {
			act(p)
		}
		s.settle(p)
		picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatalf("take the picture: %v", err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
		_ = p.eval(`(globalThis.call?.leave(), true)`, nil)
	})
}

// settle lets layers and layout come to rest. It counts frames, because a
// picture is as sharp as the frames that came before it.
func (s *studio) settle(p *page) {
	s.t.Helper()
	if err := p.eval(`new Promise((resolve) => {
	  let frames = 0;
	  const next = () => (++frames > 90 ? resolve(true) : requestAnimationFrame(next));
	  next();
	})`, nil); err != nil {
		s.t.Fatal(err)
	}
}
