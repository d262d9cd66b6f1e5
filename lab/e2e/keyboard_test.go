//go:build long

package e2e

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// typist uses a page by real keys only.
type typist struct {
	*page
	tab context.Context
}

func (k *typist) keys(t *testing.T, keys string) {
	t.Helper()
	if err := chromedp.Do(k.tab, chromedp.KeyEvent(keys)); err != nil {
		t.Fatal(err)
	}
}

// focusSeen says what is wrong with where the focus is: it must be in view, under nothing else, and marked.
const focusSeen = `(() => {
  const e = document.activeElement;
  if (e === document.body) return '';
  const called = e.localName + (e.id ? '#' + e.id : '') + ' "' + (e.getAttribute('aria-label') ?? e.textContent.trim().slice(0, 20)) + '"';
  const box = e.getBoundingClientRect();
  const [left, right] = [Math.max(box.left, 0), Math.min(box.right, innerWidth)];
  const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, innerHeight)];
  if (left >= right || top >= bottom) return called + ' is out of view';
  const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  if (at?.closest('.notices') && innerHeight > 330) return ''; // Escape takes it away.
  if (!e.contains(at) && !at?.contains(e) && ![...e.labels ?? []].some((label) => label.contains(at))) return called + ' is covered by ' + at?.outerHTML.slice(0, 80);
  if (document.documentElement.scrollWidth > innerWidth) return 'with ' + called + ' the page scrolls sideways';
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(e);
  if (e.tabIndex >= 0 && (outlineStyle === 'none' || outlineWidth === '0px') && boxShadow === 'none') return called + ' does not show that it has the focus';
  return '';
})()`

// to presses Tab until the focus is on what the selector names, and looks at each stop.
func (k *typist) to(t *testing.T, selector string) {
	t.Helper()
	for range 60 {
		k.keys(t, kb.Tab)
		k.looks(t, "on the way to "+selector)
		var there bool
		k.mustEval(t, fmt.Sprintf("document.activeElement.matches(%q)", selector), &there)
		if there {
			return
		}
	}
	t.Fatalf("60 times Tab do not lead to %s", selector)
}

// goesAround presses Tab, and then Shift and Tab, until the focus comes to where it has been, and looks at each stop.
func (k *typist) goesAround(t *testing.T, view string) {
	t.Helper()
	shoot(k.tab, t, "keyboard, "+view)
	for _, modifiers := range []chromedp.Modifier{0, chromedp.ModifierShift} {
		k.mustEval(t, "(globalThis.__stops = new Set(), true)", nil)
		for stops, again := 0, false; !again; stops++ {
			if stops == 80 {
				t.Fatalf("%s: 80 stops", view)
			}
			if err := chromedp.Do(k.tab, chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(modifiers))); err != nil {
				t.Fatal(err)
			}
			k.looks(t, view)
			k.mustEval(t, "(() => { const e = document.activeElement, again = __stops.has(e); __stops.add(e); return again; })()", &again)
		}
	}
}

// looks fails unless the focus is seen.
func (k *typist) looks(t *testing.T, view string) {
	t.Helper()
	var wrong string
	k.mustEval(t, focusSeen, &wrong)
	if wrong != "" {
		t.Errorf("%s: %s", view, wrong)
	}
}

// uses presses a control where it is shown, else the item of these words in the menu of what has no place.
func (k *typist) uses(t *testing.T, control, words string) {
	t.Helper()
	var shown bool
	k.mustEval(t, fmt.Sprintf("document.querySelector(%q).checkVisibility()", control), &shown)
	if shown {
		k.to(t, control)
		k.keys(t, kb.Enter)
		return
	}
	k.to(t, "#fold")
	k.keys(t, kb.Enter)
	k.chooses(t, words)
}

// chooses goes down the menu that is open to the item of these words.
func (k *typist) chooses(t *testing.T, words string) {
	t.Helper()
	for range 20 {
		k.looks(t, "on the way to "+words)
		var there bool
		k.mustEval(t, fmt.Sprintf("document.activeElement.role === 'menuitem' && document.activeElement.textContent.startsWith(%q)", words), &there)
		if there {
			k.keys(t, kb.Enter)
			return
		}
		k.keys(t, kb.ArrowDown)
	}
	t.Fatalf("the menu has no %q", words)
}

// TestACallByKeyboardAlone goes through a whole call by keys, on a desk and in 320 x 256 CSS pixels: 1280 x 1024 at 400 %.
func TestACallByKeyboardAlone(t *testing.T) {
	for _, screen := range []string{"light small", "dark desk"} {
		t.Run(screen, func(t *testing.T) { callByKeyboardAlone(t, screen) })
	}
}

func callByKeyboardAlone(t *testing.T, screen string) {
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 1})
	alan := join(t, c.URL(), "keyboard", "Alan", nil)
	alan.knowsItself(t)
	tab, p := openTab(t, "Ada")
	ada := &participant{page: p}
	k := &typist{page: p, tab: tab}
	show(tab, t, screen)
	if err := chromedp.Do(tab, chromedp.Navigate(callAddress(c.URL(), "keyboard", "", url.Values{"autojoin": {"0"}, "host": {"1"}}))); err != nil {
		t.Fatal(err)
	}
	ada.sees(t, "itself", `document.querySelector('#preview').videoWidth > 0`)
	ada.mustEval(t, fakeScreen, nil)

	k.goesAround(t, screen+", the lobby")
	k.to(t, "#name")
	k.keys(t, "Ada")
	k.to(t, "#enter")
	k.keys(t, kb.Enter)
	ada.knowsItself(t)
	allDecodeAll(t, time.Minute, []*participant{ada, alan})
	k.goesAround(t, screen+", the call")

	k.to(t, ".controls [data-toggle=microphone]")
	k.keys(t, " ")
	alan.sees(t, "that Ada is muted", tileOf(ada)+".classList.contains('silent')")
	k.keys(t, "m")
	alan.sees(t, "that Ada is heard", "!"+tileOf(ada)+".classList.contains('silent')")

	if screen == "light small" {
		k.to(t, "#fold")
		k.keys(t, kb.Enter)
		ada.sees(t, "names of what is folded", `[...document.querySelectorAll('[role=menuitem]')].map((item) => item.textContent.trim()).includes('People 2')`)
		shoot(tab, t, "keyboard, the menu")
		k.keys(t, kb.Escape)
	}
	k.uses(t, "#share", "Share")
	alan.sees(t, "Ada's screen", `document.querySelector('.tile.screen:not(.dark) video')?.videoWidth > 0`)
	k.keys(t, "s")
	alan.sees(t, "no screen", `!document.querySelector('.tile.screen')`)

	k.uses(t, ".controls [data-panel=settings]", "Settings")
	ada.sees(t, "the settings", `document.activeElement.closest('#panel-settings')`)
	k.goesAround(t, screen+", the settings")
	k.keys(t, kb.Escape)
	alan.mustEval(t, `(call.moderation.raiseHand(true), true)`, nil)
	alan.mustEval(t, fakeScreen, nil)
	alan.press(t, "s")
	k.to(t, "#invite")
	k.keys(t, kb.Enter)
	ada.sees(t, "the invitation", `document.activeElement.closest('#panel-invite')`)
	k.goesAround(t, screen+", the invitation")
	k.to(t, "#copy")
	k.keys(t, kb.Enter)
	ada.sees(t, "a notice", `document.querySelector('.notice button')`)
	k.uses(t, ".controls [data-panel=people]", "People")
	ada.sees(t, "the people", `document.activeElement.closest('#panel-people') && document.querySelector('#people .state.hand ~ .state.screen')`)
	k.goesAround(t, screen+", the people")
	k.to(t, "[aria-label='Options for Alan']")
	k.keys(t, kb.Enter)
	shoot(tab, t, "keyboard, "+screen+", the menu of Alan")
	k.chooses(t, "Remove")
	alan.sees(t, "that it was removed", `document.activeElement === document.querySelector('#rejoin')`)
	alan.mustEval(t, `(document.querySelector('#rejoin').click(), true)`, nil)
	alan.knowsItself(t)
	allDecodeAll(t, time.Minute, []*participant{ada, alan})
	k.keys(t, kb.Escape)
	ada.sees(t, "neither the list nor the notice", `document.querySelector('#side').hidden && !document.querySelector('.notice button')`)

	k.uses(t, ".controls [data-panel=chat]", "Chat")
	ada.sees(t, "the chat's field", `document.activeElement.id === 'line'`)
	k.goesAround(t, screen+", the chat")
	k.to(t, "#line")
	k.keys(t, "by keys"+kb.Enter)
	alan.sees(t, "the line", lines("by keys", 1))

	// A failover takes neither the focus nor what was written.
	k.keys(t, "half a")
	node := ada.mustStats(t).Node
	kill(t, c, node)
	ada.sees(t, "the move", fmt.Sprintf(`call.node !== %q && call.state === 'live'`, node))
	k.keys(t, " line"+kb.Enter)
	alan.sees(t, "the line", lines("half a line", 1))
	k.keys(t, kb.Escape)
	ada.sees(t, "the focus back", `document.querySelector('#side').hidden && document.activeElement.matches('[data-panel=chat]')`)
	allDecodeAll(t, time.Minute, []*participant{ada, alan})

	k.keys(t, "l")
	ada.sees(t, "the question", `document.querySelector('#leaving').open`)
	shoot(tab, t, "keyboard, the question")
	k.keys(t, kb.Escape)
	ada.sees(t, "the call", `!document.querySelector('#leaving').open`)
	k.to(t, "#leave")
	k.keys(t, kb.Enter)
	ada.sees(t, "the question, because it may end the call of all", `document.querySelector('#leaving').open && document.activeElement.value === 'leave'`)
	k.keys(t, kb.Enter)
	ada.sees(t, "what comes after", `document.activeElement === document.querySelector('#rejoin')`)
	alan.sees(t, "nobody else", `document.querySelectorAll('.tile').length === 1`)
}
