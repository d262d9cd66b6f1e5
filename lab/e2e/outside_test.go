package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// hostsALine locks the room of the call, whose People panel is open, and shows who waits to be let in.
func (a *audit) hostsALine(t *testing.T, screen string) {
	t.Helper()
	token, err := a.cluster.Token("everybody", "eve")
	if err != nil {
		t.Fatal(err)
	}
	a.mustEval(t, `(document.querySelector('#lock').click(), true)`, nil)
	a.sees(t, "the lock", `!document.querySelector('#locked').hidden`)
	conn := queues(t, a.cluster, "eve", token)
	a.mustEval(t, `(call.moderation.door.ask(), true)`, nil) // The page does so every two seconds.
	a.sees(t, "who waits", waiting("eve"))
	a.judge(t, screen+", somebody waits")
	a.mustEval(t, `(document.querySelector('#waiting .person button:last-of-type').click(), document.querySelector('#lock').click(), true)`, nil)
	a.sees(t, "nobody at the open door", `document.querySelector('#waiting').hidden && document.querySelector('#locked').hidden`)
	_ = conn.CloseNow()
}

const alone = `!document.querySelector('#alone').hidden && document.querySelector('.tile.self:not(.dark)')`

// outsideACall judges what somebody reads who is not in a call: in line, with a link that is too old, without one, before a test;
// and who is alone in one, where that is tight.
func (a *audit) outsideACall(t *testing.T) {
	c := a.cluster
	for _, who := range []string{"cy", "dee"} {
		sits(t, c, "full", who)
	}
	grant := access.Everything("ada", "old")
	grant.Name = "Ada"
	expired, err := access.Mint(c.Access().Key, c.Access().Secret, grant, -time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	reads := func(sentence string) string {
		return fmt.Sprintf(`document.querySelector('#problem').textContent === (await import('/page/words.js')).say(%q) && document.querySelector('#preview').videoWidth > 0`, sentence)
	}
	for _, screen := range screens {
		t.Run(screen, func(t *testing.T) {
			show(a.tab, t, screen)
			a.opens(t, screen, "full", url.Values{"token": {cappedToken(t, c, "full", "ada")}})
			a.sees(t, "its place in line", `document.activeElement.id === 'stop-waiting' && document.querySelector('#preview').videoWidth > 0`)
			a.judge(t, screen+", in line")
			a.opens(t, screen, "old", url.Values{"token": {expired}})
			a.sees(t, "that its link is too old", reads("error.token_expired"))
			a.judge(t, screen+", an old link")
			a.opens(t, screen, "somewhere", url.Values{"name": {"Ada"}, "autojoin": {"0"}})
			a.mustEval(t, `(globalThis.fetch = async () => Response.json({ dev: false }), document.querySelector('#enter').click(), true)`, nil)
			a.sees(t, "that it needs a link", reads("error.needs_link"))
			a.judge(t, screen+", no link")
			a.readsEach(t, screen+", refused", "#problem")
			a.load(t, c.URL()+"check/?"+url.Values{"lang": {languages[screen]}}.Encode())
			a.sees(t, "what is tested", "document.querySelectorAll('#checks li').length === 8 && document.querySelector('#start').textContent !== ''")
			a.judge(t, screen+", the check")
			a.load(t, c.URL()+"operator/?"+url.Values{"lang": {languages[screen]}}.Encode())
			a.sees(t, "the cluster", `document.querySelector('#nodes-rows .row[data-state="up"]') && document.querySelector('#timeline .event')`)
			a.judge(t, screen+", the operator's page")
			a.mustEval(t, `(document.querySelector('#nodes-rows .row .open').click(), true)`, nil)
			a.sees(t, "one node", `document.querySelector('#sheet').open && document.querySelector('#sheet .facts dd')`)
			a.judge(t, screen+", the operator's page, one node")
			if strings.HasSuffix(screen, "desk") {
				return
			}
			a.opens(t, screen, "alone", url.Values{"name": {"Ada"}})
			a.sees(t, "that it is alone", alone)
			a.judge(t, screen+", alone")
		})
	}
}

// readsEach has the view judged with each sentence about a call that did not begin or is over, where one of them is shown.
func (a *audit) readsEach(t *testing.T, view, place string) {
	t.Helper()
	var read struct {
		Sentences int
		Wrong     []string
	}
	a.mustEval(t, fmt.Sprintf(`(async () => {
	  const { default: words } = await import('/page/words/en.js');
	  const { ofCall } = await import('/page/sentences.js');
	  const codes = Object.keys(words).filter((key) => /^(error|passing)\./.test(key)).map((key) => key.split('.')[1]);
	  const shown = document.querySelector(%q);
	  const wrong = [];
	  for (const code of codes) {
	    shown.textContent = ofCall({ code, message: '' });
	    wrong.push(...(await %s).map((one) => code + ': ' + one));
	  }
	  return { sentences: codes.length, wrong };
	})()`, place, a.by.found), &read)
	if read.Sentences < 30 || len(read.Wrong) > 0 {
		t.Errorf("%s, with %d sentences:\n%s", view, read.Sentences, strings.Join(read.Wrong, "\n"))
	}
}

// amongThirteen judges a call of thirteen, and the list of them.
func (a *audit) amongThirteen(t *testing.T) {
	gatherAs(t, a.cluster, "thirteen", 12, peer.Options{CameraOff: true})
	for _, screen := range screens {
		t.Run(screen, func(t *testing.T) {
			show(a.tab, t, screen)
			a.opens(t, screen, "thirteen", url.Values{"name": {"Ada"}, "host": {"1"}})
			a.sees(t, "all thirteen", `globalThis.call?.state === 'live' && call.roster.length === 13 && document.querySelector('.tile.self:not(.dark)') && document.querySelectorAll('#people .person').length === 13`)
			a.judge(t, screen+", thirteen")
			a.press(t, "p")
			a.sees(t, "the people", `!document.querySelector('#panel-people').hidden`)
			a.judge(t, screen+", the list of thirteen")
		})
	}
}
