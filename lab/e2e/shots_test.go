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

// TestShots is a command in the form of a test: it writes the pictures to look at after a change of the page that
// TestThePageIsForEverybody does not take with HOLDFAST_SHOTS. TestFilm makes those of the README.
func TestShots(t *testing.T) {
	if *shotsDir == "" {
		t.Fatal("say where to put the pictures: -args -shots DIR")
	}
	needChromium(t, 2)
	dir, err := filepath.Abs(*shotsDir)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &studio{t: t, cluster: startCluster(t, devcluster.Options{}), dir: dir}
	s.browser = s.newBrowser()
	if err := chromedp.Do(s.browser); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	ada := func(room, fault string) url.Values {
		q := url.Values{"name": {"Ada Lovelace"}, "room": {room}, "autojoin": {"1"}}
		if fault != "" {
			q.Set("fault", fault)
		}
		return q
	}
	asking := url.Values{"name": {"Ada Lovelace"}, "fault": {"asking"}}
	s.shoot("permission", desk, asking, `document.querySelector('.asking')`, nil)
	for _, fault := range []string{"denied", "missing", "busy"} {
		asking.Set("fault", fault)
		s.shoot("error-"+fault, desk, asking, `document.querySelector('#preview-note').textContent.includes('join without')`, nil)
	}
	for _, fault := range []string{"unreachable", "room_full", "token_expired", "superseded", "kicked", "no_nodes"} {
		s.shoot("error-"+fault, desk, ada("design-review", fault), `!document.querySelector('#problem').hidden && document.querySelector('#preview').videoWidth`, nil)
	}
	s.fill("design-review", people24[:4])
	s.shoot("chat", desk, ada("design-review", ""), inCall(5), s.talk)
	held := func(tab *page) {
		tab.mustEval(s.t, `(holdBack(), true)`, nil)
		s.until(tab, `document.querySelector('.tile.paused')`)
	}
	s.shoot("paused", desk, ada("design-review", "narrow"), inCall(5), held)
	limited := func(tab *page) {
		tab.mustEval(s.t, `(call.limited = true, call.dispatchEvent(new CustomEvent('limited', { detail: { limited: true } })))`, nil)
		s.until(tab, `!document.querySelector('#banner').hidden`)
	}
	s.shoot("limited", desk, ada("design-review", ""), inCall(5), limited)
	s.shoot("limited-phone", phone, ada("design-review", ""), inCall(5), limited)
	s.crowd.mustEval(s.t, `calls[0].replaceTrack('screen', drawnSlide().getVideoTracks()[0]).then(() => true)`, nil)
	large := `document.querySelector('.tile.large:not(.dark) video')?.videoWidth > 900`
	s.shoot("screen", desk, ada("design-review", ""), large, nil)
	s.shoot("phone-screen", phone, ada("design-review", ""), large, nil)
	s.crowd.mustEval(s.t, `calls[0].replaceTrack('screen', null).then(() => true)`, nil)
	s.fill("all-hands", people24)
	s.shoot("call-25", wide, ada("all-hands", ""), inCall(25), nil)
	s.shoot("phone-25", phone, ada("all-hands", ""), inCall(8), nil)
	in := ada(strings.TrimSpace(strings.Repeat("a room with a long name ", 5)), "") // as the page does
	in.Set("name", "Adolph Blaine Charles David Earl Wolfeschlegelsteinhausen")
	s.fill(in.Get("room"), []string{"Wolfeschlegelsteinhausenbergerdorff", "محمد بن موسى الخوارزمي أبو عبد الله", "Ada 🦊 of the very long and winding name", "李"})
	s.shoot("names", desk, in, inCall(5), nil)
	s.shoot("landscape", landscape, in, inCall(5), nil)
	for name, size := range map[string]screenSize{"phone": phone, "short": short, "landscape": landscape} {
		s.t.Run("walk on a "+name, func(t *testing.T) { s.walk(t, "walk-"+name+"-", size) })
	}
}

// walk pictures a whole visit on a small screen.
func (s *studio) walk(t *testing.T, name string, size screenSize) {
	outer := s.t
	s.t = t
	defer func() { s.t = outer }()
	tab, closeTab := chromedp.NewContext(s.browser)
	defer closeTab()
	step := 0
	take := func(p *page, what string) {
		step++
		s.settle(p)
		s.picture(tab, fmt.Sprintf("%s%02d-%s", name, step, what))
	}
	does := func(p *page, script string) { p.mustEval(t, "("+script+", true)", nil) }
	s.fill("pair", people24[:1])
	p := s.open(tab, size, url.Values{"name": {"Ada Lovelace"}, "room": {"pair"}, "autojoin": {"0"}})
	s.until(p, `document.querySelector('#preview').videoWidth > 0`)
	take(p, "lobby")
	does(p, `document.querySelector('#to-check').scrollIntoView()`)
	take(p, "lobby-below")
	does(p, `document.querySelector('#enter').click()`)
	s.until(p, inCall(2))
	take(p, "two")
	s.fill("design-review", people24[:4])
	p = s.open(tab, size, url.Values{"name": {"Ada Lovelace"}, "host": {"1"}, "autojoin": {"1"}})
	s.until(p, inCall(5))
	take(p, "five")
	does(p, `document.querySelector('#react').click()`)
	take(p, "reactions")
	does(p, `document.querySelector('.menu.reactions:not([hidden]) button:nth-child(2)').click()`)
	s.crowd.mustEval(t, `(calls[0].moderation.raiseHand(true), calls[1].moderation.react('🎉'), true)`, nil)
	s.until(p, `document.querySelector('.raised:not([hidden])')`)
	take(p, "hand")
	for _, panel := range []string{"people", "settings"} {
		does(p, fmt.Sprintf(`document.querySelector('.controls [data-panel=%s]').click()`, panel))
		s.until(p, fmt.Sprintf(`!document.querySelector('#panel-%s').hidden`, panel))
		take(p, panel)
	}
	does(p, `document.querySelector('#panel-settings .close').click()`)
	s.talk(p)
	take(p, "chat")
	does(p, `document.querySelector('#panel-chat .close').click()`)
	does(p, `document.querySelector('#fold').click()`)
	take(p, "more")
	does(p, `document.querySelector('#fold').click()`)
	s.crowd.mustEval(t, `calls[0].replaceTrack('screen', drawnSlide().getVideoTracks()[0]).then(() => true)`, nil)
	s.until(p, `document.querySelector('.tile.large:not(.dark) video')?.videoWidth > 900`)
	take(p, "their-screen")
	s.crowd.mustEval(t, `calls[0].replaceTrack('screen', null).then(() => true)`, nil)
	s.until(p, `!document.querySelector('.tile.screen')`)
	does(p, `document.querySelector('#share').click()`)
	s.until(p, `document.querySelector('.tile.screen')`)
	take(p, "own-screen")
	does(p, `document.querySelector('#share').click()`)
	var node string
	p.mustEval(t, "call.node", &node)
	does(p, `document.querySelector('#kill').click()`)
	s.until(p, `document.querySelectorAll('#status-moves li').length > 0`)
	s.until(p, inCall(5))
	restart(t, s.cluster, node)
	take(p, "moved")
	p.press(t, "l")
	take(p, "question")
	does(p, `document.querySelector('#leaving [value=leave]').click()`)
	s.until(p, `document.activeElement.id === 'rejoin'`)
	take(p, "after")
}

var people24 = []string{
	"Grace Hopper", "Alan Turing", "Hedy Lamarr", "Edsger Dijkstra", "Radia Perlman", "Barbara Liskov",
	"Donald Knuth", "Margaret Hamilton", "Tony Hoare", "Frances Allen", "Ken Thompson",
	"Lynn Conway", "Leslie Lamport", "Karen Spärck Jones", "Niklaus Wirth", "Jean Bartik", "Dennis Ritchie", "Adele Goldberg",
	"Robin Milner", "Sophie Wilson", "Butler Lampson", "Anita Borg", "Vint Cerf", "Shafi Goldwasser",
}

func (s *studio) talk(tab *page) {
	for i, line := range []string{
		`calls[0].say('Morning! Can everybody see the agenda?')`, `calls[2].say('Yes. I would start with the failover.')`,
		`calls[2].say('Two nodes are enough for that.')`,
	} {
		s.crowd.mustEval(s.t, line, nil)
		s.until(tab, fmt.Sprintf(`document.querySelectorAll('.line').length > %d`, i))
	}
	tab.mustEval(s.t, `call.say('Then let us kill one and see.').id`, nil)
	tab.mustEval(s.t, `(document.querySelector('.controls [data-panel=chat]').click(), true)`, nil)
	s.until(tab, `document.querySelectorAll('.line').length >= 4 && !document.querySelector('[data-state=sending]')`)
}

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
	mobile        bool
}

var (
	desk      = screenSize{width: 1280, height: 800, scale: 1}
	wide      = screenSize{width: 1920, height: 1080, scale: 1}
	phone     = screenSize{width: 390, height: 844, scale: 2, mobile: true}
	short     = screenSize{width: 360, height: 640, scale: 2, mobile: true}
	landscape = screenSize{width: 844, height: 390, scale: 2, mobile: true}
)

// fill lets drawn people join a room, and those of the room before leave.
func (s *studio) fill(room string, people []string) {
	s.t.Helper()
	if s.crowd == nil {
		s.crowd = s.open(s.newBrowser(), desk, url.Values{})
	}
	s.crowd.mustEval(s.t, `(globalThis.calls ?? []).map((call) => call.leave()).length`, nil)
	if err := s.crowd.evalWithin(time.Minute, fmt.Sprintf("crowd('%s', ['%s'])", room, strings.Join(people, "', '")), nil); err != nil {
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
	_, err := chromedp.Call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: peopleScript})
	if err == nil {
		_, err = chromedp.Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}, {Name: "prefers-reduced-motion", Value: "reduce"}},
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
		s.picture(tab, name)
		_ = p.eval(`(globalThis.call?.leave(), true)`, nil)
	})
}

func (s *studio) picture(tab context.Context, name string) {
	s.t.Helper()
	picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, name+".png"), picture, 0o644)
	}
	if err != nil {
		s.t.Fatalf("take the picture: %v", err)
	}
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
