package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// rings asks somebody into the room from the Invite panel.
func (p *page) rings(t *testing.T, name string) {
	t.Helper()
	p.sees(t, "whom it may ring", `!document.querySelector('#ringing').hidden`)
	p.mustEval(t, fmt.Sprintf(`(() => {
	  if (document.querySelector('#panel-invite').hidden) document.querySelector('#invite').click();
	  document.querySelector('#ring-to').value = %q;
	  document.querySelector('#ringing').requestSubmit();
	  return true;
	})()`, name), nil)
}

func rung(name string) string {
	return fmt.Sprintf(`!document.querySelector('#ring').hidden && document.querySelector('#ring-title').textContent === '%s is calling'`, name)
}

func ringIs(state string) string {
	return fmt.Sprintf(`document.querySelector('#rings [data-state=%s]')`, state)
}

// atNode is the page of a signaling node, without the balancer before it.
func atNode(t *testing.T, c *devcluster.Cluster, node string) string {
	t.Helper()
	n, err := c.Node(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + n.Addresses[child.AddressHTTP]
}

// TestRinging: a person in a call rings another who is on the start page of another signaling node; all that may become of it.
func TestRinging(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1})
	ada := join(t, atNode(t, c, "signaling-1"), "ringing", "Ada", nil)
	ada.knowsItself(t)
	grace := join(t, atNode(t, c, "signaling-2"), "", "Grace Hopper", url.Values{"autojoin": {"0"}})
	grace.sees(t, "the lobby", `document.querySelector('#preview').videoWidth > 0`)
	t.Run("declined", func(t *testing.T) {
		eventuallyRings(t, ada, grace)
		grace.sees(t, "who asks where to", `document.activeElement === document.querySelector('#ring') && document.querySelector('#ring-text').textContent.includes('ringing') && document.title.startsWith('Ada')`)
		grace.press(t, "Escape")
		ada.sees(t, "no", ringIs("declined"))
		grace.sees(t, "its lobby", `document.querySelector('#ring').hidden && document.querySelector('#missed').hidden && document.title === 'Holdfast'`)
	})
	t.Run("reloaded and missed", func(t *testing.T) {
		eventuallyRings(t, ada, grace)
		grace.reloads(t, rung("Ada"))
		ada.mustEval(t, `(document.querySelector('#rings [data-state=ringing] button').click(), true)`, nil)
		grace.sees(t, "what it missed", `document.querySelector('#ring').hidden && document.querySelectorAll('#missed-list li').length === 1 && document.querySelector('#missed').checkVisibility()`)
		grace.mustEval(t, `(document.querySelector('#missed-seen').click(), true)`, nil)
		grace.sees(t, "nothing missed", `document.querySelector('#missed').hidden`)
	})
	t.Run("missed while the page is loaded", func(t *testing.T) {
		eventuallyRings(t, ada, grace)
		var lobby string
		grace.mustEval(t, `location.href`, &lobby)
		grace.visit(t, "about:blank", "true")
		ada.mustEval(t, `(document.querySelector('#rings [data-state=ringing] button').click(), true)`, nil)
		ada.sees(t, "it ended", ringIs("unanswered"))
		grace.visit(t, lobby, `document.querySelectorAll('#missed-list li').length === 1 && document.querySelector('#missed').checkVisibility()`)
		grace.mustEval(t, `(document.querySelector('#missed-seen').click(), true)`, nil)
	})
	t.Run("accepted", func(t *testing.T) {
		eventuallyRings(t, ada, grace)
		grace.mustEval(t, `(document.querySelector('#ring-accept').click(), true)`, nil)
		ada.sees(t, "a yes", ringIs("accepted"))
		grace.knowsItself(t)
		allDecodeAll(t, time.Minute, []*participant{ada, grace})
		grace.sees(t, "the room", `call.room === 'ringing' && !call.moderation.allowed && document.querySelector('#lobby').hidden`)
	})
	t.Run("writes to one alone", func(t *testing.T) {
		ada.mustEval(t, `(() => {
		  document.querySelector('.controls [data-panel=chat]').click();
		  const to = document.querySelector('#to');
		  to.value = 'grace-hopper';
		  to.dispatchEvent(new Event('change'));
		  return true;
		})()`, nil)
		ada.write(t, "for you alone")
		ada.sees(t, "it delivered", lines("for you alone", 1)+` && document.querySelector('.line.own.private').dataset.state === 'sent' && document.querySelector('.line .fate').textContent === 'delivered'`)
		grace.sees(t, "it once, as private", lines("for you alone", 1)+` && document.querySelectorAll('.line.private').length === 1 && call.chat.length === 0 && document.querySelector('#unread').textContent === '1'`)
	})
	t.Run("nobody of that name", func(t *testing.T) {
		// A cluster that has just begun does not know yet who is not online.
		eventually(t, time.Minute, "Ada hears that Alan is not online", func() error {
			var offline bool
			if err := ada.eval(`Boolean(`+ringIs("offline")+`)`, &offline); err != nil || offline {
				return err
			}
			ada.rings(t, "Alan")
			return errNotAll
		})
	})
}

// eventuallyRings begins a ring that both sides see.
func eventuallyRings(t *testing.T, caller, callee *participant) {
	t.Helper()
	caller.reaches(t, callee.name)
	callee.sees(t, "a ring", rung(caller.name))
}

// reaches rings until it rings there: a page that has just opened is not online yet.
func (p *page) reaches(t *testing.T, name string) {
	t.Helper()
	eventually(t, time.Minute, name+"'s page rings", func() error {
		var state string
		err := p.eval(`['ringing', 'calling'].find((state) => document.querySelector('#rings [data-state=' + state + ']')) ?? ''`, &state)
		switch {
		case err != nil || state == "ringing":
			return err
		case state == "":
			p.rings(t, name)
		}
		return errNotAll
	})
}

// reloads has the page loaded anew, until it shows something.
func (p *page) reloads(t *testing.T, condition string) {
	t.Helper()
	p.mustEval(t, `(globalThis.loadedBefore = true, setTimeout(() => location.reload()), true)`, nil)
	p.sees(t, "after a reload: "+condition, "!globalThis.loadedBefore && "+condition)
}

// TestARingSurvivesItsNode: the callee's signaling node is killed while it rings. The ring is still there when its client has resumed
// elsewhere, and the answer puts both into the room.
func TestARingSurvivesItsNode(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1})
	grace := join(t, c.URL(), "", "Grace Hopper", url.Values{"autojoin": {"0"}})
	ada := join(t, c.URL(), "ring-survives", "Ada", nil)
	ada.knowsItself(t)
	online := func(node string) error {
		return logged(t, c, node, fmt.Sprintf(`"connection in no room begins","process":%q,"identity":"grace-hopper"`, node))
	}
	died, other := "signaling-1", "signaling-2"
	eventually(t, time.Minute, "Grace is online", func() error {
		err := online(died)
		if err != nil && online(other) == nil {
			died, other = other, died
			return nil
		}
		return err
	})
	eventuallyRings(t, ada, grace)
	kill(t, c, died)
	eventually(t, time.Minute, "Grace is online at the other node", func() error { return online(other) })
	grace.sees(t, "the ring", rung("Ada"))
	ada.sees(t, "that it rings", ringIs("ringing"))
	grace.mustEval(t, `(document.querySelector('#ring-accept').click(), true)`, nil)
	ada.sees(t, "a yes", ringIs("accepted"))
	grace.knowsItself(t)
	allDecodeAll(t, time.Minute, []*participant{ada, grace})
}
