package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

//go:embed testdata/rules.js
var rulesScript string

// plants maps what a rule says to a fault that makes it say so, one or more for each rule.
var plants = map[string]string{
	"heading-one":            `document.querySelector('#stage h1').outerHTML = '<h2 id="title">room</h2>'`,
	"heading-order":          `document.querySelector('#panel-people h2').outerHTML = '<h4 id="people-title">People</h4>'`,
	"heading-empty":          `document.querySelector('#people-title').textContent = ''`,
	"landmark-main":          `document.querySelector('#stage').outerHTML = document.querySelector('#stage').outerHTML.replace('<main', '<section').replace('</main', '</section')`,
	"list: <p>":              `document.querySelector('#people').append(document.createElement('p'))`,
	"contrast: <input":       `document.querySelector('#title').insertAdjacentHTML('afterend', '<input aria-label="faint" placeholder="faint" style="background: #888">')`,
	"name: <button":          `document.querySelector('#leave').removeAttribute('aria-label'), document.querySelector('#leave').title = ''`,
	"label-in-name":          `document.querySelector('#count').setAttribute('aria-label', 'Who is here')`,
	"list: <ul":              `document.querySelector('#people').setAttribute('role', 'log')`,
	"listitem":               `document.querySelector('#people').setAttribute('role', 'log')`,
	"idref":                  `document.querySelector('#people').setAttribute('aria-labelledby', 'nobody')`,
	"duplicate-id":           `document.querySelector('#copy').id = 'leave'`,
	"aria-hidden-focus":      `document.querySelector('.controls').setAttribute('aria-hidden', 'true')`,
	"landmark-complementary": `document.querySelector('#side').setAttribute('role', 'complementary')`,
	"region":                 `document.body.insertAdjacentHTML('beforeend', '<p>outside</p>')`,
	"target-size":            `document.querySelector('#leave').style.cssText = 'width: 18px; height: 18px'`,
	"contrast":               `document.querySelector('#title').style.color = '#667'`,
	"field-edge":             `document.querySelector('#most').closest('[hidden]')?.removeAttribute('hidden'), document.querySelector('#most').style.borderColor = '#333d40'`,
	"cut-off":                `document.querySelector('#mute-all').style.cssText = 'width: 60px; min-width: 0'`,
	"off-screen":             `document.querySelector('#leave').style.cssText = 'position: fixed; right: -80px'`,
	"scrolls-sideways":       `document.querySelector('#leave').style.cssText = 'position: absolute; right: -80px', document.querySelector('#stage').style.overflow = 'visible'`,
	"covered":                `document.querySelector('.controls').append(document.createElement('div')), Object.assign(document.querySelector('.controls > div').style, { position: 'fixed', inset: 0 })`,
	"over-face":              `document.querySelector('.tile:not(.inset)').classList.add('dark'), Object.assign(document.querySelector('.tile.dark .plate').style, { bottom: '50%', insetInlineStart: '45%' })`,
	"invisible-target":       `document.querySelector('.tile .pin').style.pointerEvents = 'auto'`,
	"scrollable":             `(document.querySelector('#people').style.cssText = 'max-height: 10px; overflow-y: auto', document.querySelector('#people').removeAttribute('tabindex'), document.querySelectorAll('#people button').forEach((b) => b.remove()))`,
}

// TestThePageIsForEverybody checks every view by testdata/rules.js, each of whose rules is shown failing.
func TestThePageIsForEverybody(t *testing.T) {
	t.Parallel()
	showsEveryView(t, auditor{script: rulesScript, found: "violations()"}, plantAll)
}

// auditor is a script that is run in each page, and an expression whose value lists what is wrong with what is shown.
type auditor struct{ script, found string }

// openTab starts a browser of its own whose tab the test can resize and type into.
func openTab(t *testing.T, name string) (context.Context, *page) {
	t.Helper()
	alloc, stop := chromedp.NewExecAllocator(context.Background(), chromiumFlags(t.TempDir())...)
	t.Cleanup(stop)
	tab, closeTab := chromedp.NewContext(alloc)
	t.Cleanup(func() { _ = chromedp.Cancel(tab); closeTab() })
	return tab, &page{name: name, run: func(limit context.Context, script string) (string, error) {
		within, cancel := context.WithCancel(tab)
		defer context.AfterFunc(limit, cancel)()
		defer cancel()
		return chromedp.Run(within, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	}}
}

// Each view is shown on each screen; on some in Arabic, from right to left, or in German, whose words are long.
var (
	screens   = []string{"dark desk", "light desk", "dark phone", "light small"}
	languages = map[string]string{"light desk": "ar", "dark phone": "de"}
)

// audit is the page of one person, whose every view the auditor judges.
type audit struct {
	*participant
	tab     context.Context
	cluster *devcluster.Cluster
	by      auditor
}

// load opens an address, and brings the auditor along.
func (a *audit) load(t *testing.T, address string) {
	t.Helper()
	if err := chromedp.Do(a.tab, chromedp.Navigate(address)); err != nil {
		t.Fatal(err)
	}
	a.mustEval(t, "(() => {"+a.by.script+"})()", nil)
}

func (a *audit) opens(t *testing.T, screen, room string, query url.Values) {
	t.Helper()
	if language := languages[screen]; language != "" {
		query.Set("lang", language)
	}
	a.load(t, callAddress(a.cluster.URL(), room, "", query))
}

func (a *audit) judge(t *testing.T, view string) {
	t.Helper()
	shoot(a.tab, t, view)
	var found []string
	a.mustEval(t, a.by.found, &found)
	if len(found) > 0 {
		t.Errorf("%s:\n%s", view, strings.Join(found, "\n"))
	}
}

// showsEveryView has the auditor judge every view on every screen, and looks where the focus is. plant breaks the page at two
// of the views.
func showsEveryView(t *testing.T, by auditor, plant func(*testing.T, *page, map[string]string)) {
	t.Helper()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	tab, p := openTab(t, "Ada")
	ada := &audit{participant: &participant{page: p}, tab: tab, cluster: c, by: by}
	t.Run("a call", func(t *testing.T) { ada.inACall(t, plant) })
	t.Run("outside a call", func(t *testing.T) { ada.outsideACall(t) })
	t.Run("thirteen", func(t *testing.T) { ada.amongThirteen(t) })
}

func (a *audit) inACall(t *testing.T, plant func(*testing.T, *page, map[string]string)) {
	c, ada := a.cluster, a
	alan := join(t, c.URL(), "everybody", "Alan", url.Values{"host": {"1"}})
	alan.knowsItself(t)
	for _, screen := range screens {
		t.Run(screen, func(t *testing.T) {
			show(a.tab, t, screen)
			judge, open := a.judge, func(query url.Values) { a.opens(t, screen, "everybody", query) }
			open(url.Values{"name": {""}, "autojoin": {"0"}})
			ada.sees(t, "itself", `document.querySelector('#preview').videoWidth > 0`)
			judge(t, screen+", the lobby")
			open(url.Values{"name": {"Ada"}, "room": {""}, "autojoin": {"0"}})
			ada.sees(t, "itself", `document.querySelector('#preview').videoWidth > 0`)
			alan.reaches(t, "Ada")
			ada.sees(t, "who rings", `document.activeElement === document.querySelector('#ring')`)
			judge(t, screen+", somebody rings")
			alan.mustEval(t, `(document.querySelector('#rings [data-state=ringing] button').click(), true)`, nil)
			ada.sees(t, "what it missed", `!document.querySelector('#missed').hidden`)
			judge(t, screen+", a ring was missed")
			open(url.Values{"name": {"Ada"}, "host": {"1"}})
			ada.sees(t, "Alan", `globalThis.call?.state === 'live' && document.querySelectorAll('.tile:not(.dark)').length === 2 && !document.querySelector('#kill').hidden`)
			ada.sees(t, "the focus in the call", `document.activeElement === document.querySelector('#stage')`)
			judge(t, screen+", the call")
			alan.mustEval(t, `Boolean(call.say('Can you read this?'))`, nil)
			ada.sees(t, "an unread line", `!document.querySelector('#unread').hidden`)
			judge(t, screen+", a line unread")
			for _, panel := range []string{"chat", "people", "settings", "invite"} {
				ada.mustEval(t, fmt.Sprintf(`(document.querySelector('[data-panel=%s]').click(), true)`, panel), nil)
				ada.sees(t, panel, fmt.Sprintf(`!document.querySelector('#panel-%s').hidden`, panel))
				if panel == "invite" {
					ada.rings(t, "Nobody")
					ada.sees(t, "that nobody is there", ringIs("offline")+" || "+ringIs("unreached"))
				}
				judge(t, screen+", "+panel)
				ada.press(t, "Escape")
			}
			alan.mustEval(t, `(call.moderation.raiseHand(true), call.moderation.react('👏'), true)`, nil)
			ada.press(t, "p")
			ada.sees(t, "a hand", `document.querySelector('#people .state.hand') && document.querySelector('.float')`)
			judge(t, screen+", a hand and a reaction")
			ada.mustEval(t, `(document.querySelector('#copy').click(), true)`, nil)
			ada.sees(t, "a notice", `document.querySelector('.notice button')`)
			ada.mustEval(t, `(document.querySelector('#people .more:not([hidden])').click(), true)`, nil)
			ada.sees(t, "the whole menu", `document.activeElement.role === 'menuitem' && document.activeElement.parentElement.getBoundingClientRect().bottom <= innerHeight`)
			judge(t, screen+", the menu of a person")
			ada.press(t, "Escape")
			ada.sees(t, "the focus back", `document.activeElement.matches('.more') && !document.querySelector('#panel-people').hidden`)
			ada.hostsALine(t, screen)
			ada.press(t, "Escape")
			ada.press(t, "r")
			judge(t, screen+", reactions")
			ada.press(t, "Escape")
			alan.mustEval(t, `(call.moderation.raiseHand(false), true)`, nil)
			ada.mustEval(t, `(() => {
			  for (const [id, text] of [['title', 'Calls are unavailable right now. Retrying…'], ['text', 'You keep your place; the call resumes by itself.']]) document.querySelector('#banner-' + id).textContent = text;
			  Object.assign(document.querySelector('#banner'), { hidden: false }).dataset.outage = 'unavailable';
			  return true;
			})()`, nil)
			judge(t, screen+", an outage")
			if screen == "dark desk" {
				ada.press(t, "?")
				ada.sees(t, "the keys", `document.querySelector('.keys').checkVisibility() && document.querySelector('.keys div:last-child').getBoundingClientRect().bottom <= document.querySelector('#side').getBoundingClientRect().bottom`)
				ada.press(t, "p")
				plant(t, ada.page, plants)
				return
			}
			ada.press(t, "l")
			ada.sees(t, "the question", `document.querySelector('#leaving').open`)
			judge(t, screen+", the question")
			if screen == "dark phone" {
				ada.mustEval(t, `(document.querySelector('#leaving [value=stay]').click(), true)`, nil)
				ada.knowsItself(t)
				alan.mustEval(t, fmt.Sprintf(`(call.moderation.act('remove', %q), true)`, ada.id), nil)
			} else {
				ada.mustEval(t, `(document.querySelector('#leaving [value=leave]').click(), true)`, nil)
			}
			ada.sees(t, "what comes after", `document.activeElement === document.querySelector('#rejoin')`)
			judge(t, screen+", after the call")
			if screen != "light desk" {
				ada.readsEach(t, screen+", after the call", "#ended-text")
			}
			if screen == "light small" {
				plant(t, ada.page, map[string]string{"target-phone": `Object.assign(document.querySelector('#elsewhere').style, { flex: 'none', minWidth: 0, width: '40px' })`})
			}
		})
	}
}

// plantAll shows each rule failing: it plants a fault, looks, and takes the fault away again.
func plantAll(t *testing.T, p *page, plants map[string]string) {
	t.Helper()
	for rule, fault := range plants {
		var found struct{ Before, After []string }
		p.mustEval(t, `(() => {
		  const body = document.body.cloneNode(true);
		  const before = violations();
		  `+fault+`;
		  const after = violations();
		  document.body.replaceWith(body);
		  return { before, after };
		})()`, &found)
		if len(found.Before) > 0 || !strings.Contains(strings.Join(found.After, "\n"), rule) {
			t.Errorf("want %s in a page with that fault only: before %q, after %q", rule, found.Before, found.After)
		}
	}
}

func show(tab context.Context, t *testing.T, screen string) {
	t.Helper()
	scheme, kind, _ := strings.Cut(screen, " ")
	size := emulation.SetDeviceMetricsOverrideParams{Width: 1280, Height: 800, DeviceScaleFactor: 1}
	switch kind {
	case "small": // as 1280 x 1024 at 400 %
		size = emulation.SetDeviceMetricsOverrideParams{Width: 320, Height: 256, DeviceScaleFactor: 1}
	case "phone":
		size = emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 2, Mobile: true}
	}
	_, err := chromedp.Call(tab, emulation.SetDeviceMetricsOverride, size)
	if err == nil {
		_, err = chromedp.Call(tab, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	}
	if err == nil {
		_, err = chromedp.Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
	}
	if err != nil {
		t.Fatalf("show the page on a %s: %v", screen, err)
	}
}

// shoot takes a picture of the view where HOLDFAST_SHOTS names a directory, to be looked at.
func shoot(tab context.Context, t *testing.T, view string) {
	t.Helper()
	dir := os.Getenv("HOLDFAST_SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(view, " ", "-")+".png"), picture, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
