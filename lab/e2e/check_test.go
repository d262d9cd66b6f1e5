//go:build long

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// TestTheCheckPage tries everything before a call: where all works, behind a firewall that passes nothing but TURN, where no media
// passes, without devices, and with an invitation's token, whose room sees nothing of it.
func TestTheCheckPage(t *testing.T) {
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1, MediaHost: ownAddress(t), TURN: true})
	base := c.URL() + "check/"
	works := map[string]string{"browser": "good", "camera": "good", "microphone": "good", "service": "good", "direct": "good", "relay": "good", "up": "good fair", "down": "good fair"}
	with := func(changes map[string]string) map[string]string {
		wants := maps.Clone(works)
		maps.Copy(wants, changes)
		return wants
	}
	p := openPage(t, "Ada", base)
	p.sees(t, "what is tested", "document.querySelector('#checks li')")
	t.Run("all works", func(t *testing.T) { p.checks(t, "good fair", works) })
	t.Run("again", func(t *testing.T) { p.checks(t, "good fair", works) })
	t.Run("only TURN over TCP", func(t *testing.T) {
		p.visit(t, base+"?relay=tcp", "document.querySelector('#checks li')")
		p.checks(t, "fair", with(map[string]string{"direct": "fair", "relay": "fair"}))
	})
	t.Run("no media", func(t *testing.T) {
		p.visit(t, base+"?via=192.0.2.9:9", "document.querySelector('#checks li')")
		p.checks(t, "bad", with(map[string]string{"direct": "bad", "up": "skipped", "down": "skipped"}))
	})
	t.Run("no devices", func(t *testing.T) {
		p.visit(t, base+"?nothing", "document.querySelector('#checks li')")
		p.mustEval(t, "(navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotAllowedError')), true)", nil)
		p.checks(t, "fair", with(map[string]string{"camera": "bad", "microphone": "bad"}))
	})
	t.Run("an invitation", func(t *testing.T) {
		alan := join(t, c.URL(), "secret", "Alan", nil)
		alan.knowsItself(t)
		token, err := c.Token("secret", "Ada")
		if err != nil {
			t.Fatal(err)
		}
		p.visit(t, base+"?invited#token="+token, "document.querySelector('#checks li')")
		alan.mustEval(t, "(globalThis.__came = 0, call.addEventListener('roster', () => { if (call.roster.length > 1) globalThis.__came++; }), true)", nil)
		p.mustEval(t, "(globalThis.__asked = [], globalThis.__fetch = fetch, globalThis.fetch = (...of) => (__asked.push(of[0]), __fetch(...of)), true)", nil)
		p.checks(t, "good fair", works)
		var came int
		alan.mustEval(t, "__came", &came)
		var asked []string
		p.mustEval(t, "__asked", &asked)
		if came > 0 || !strings.Contains(strings.Join(asked, " "), "/api/v1/check") {
			t.Errorf("somebody came to the invitation's room %d times; asked for %v", came, asked)
		}
	})
	t.Run("an invitation to watch", func(t *testing.T) {
		grant := access.Everything("viewer", "secret")
		grant.CanPublish = false
		token, err := access.Mint(c.Access().Key, c.Access().Secret, grant, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		p.visit(t, base+"?watches#token="+token, "document.querySelector('#checks li')")
		p.checks(t, "fair", with(map[string]string{"up": "skipped", "down": "skipped"}))
	})
	t.Run("everybody", func(t *testing.T) {
		checkForEverybody(t, base, auditor{script: rulesScript, found: "violations()"}, screens...)
	})
}

// checks starts the check and compares what each became, one of the words given.
func (p *page) checks(t *testing.T, verdict string, wants map[string]string) {
	t.Helper()
	p.mustEval(t, "(document.querySelector('#start').click(), true)", nil)
	began := time.Now()
	eventually(t, 2*time.Minute, "the check is over", func() error {
		var over bool
		if err := p.eval("!document.querySelector('#start').disabled", &over); err != nil || !over {
			return fmt.Errorf("it goes on (%w)", err)
		}
		return nil
	})
	var told struct {
		Verdict, Sentence string
		Checks            map[string][]string
	}
	p.mustEval(t, `({ verdict: document.querySelector('#verdict').dataset.state, sentence: document.querySelector('#verdict').textContent,
	  checks: Object.fromEntries([...document.querySelectorAll('#checks li')].map((row) => [row.dataset.check, [row.dataset.state, row.querySelector('.text').textContent]])) })`, &told)
	text, _ := json.MarshalIndent(told, "", " ")
	t.Logf("after %v: %s", time.Since(began).Round(time.Second), text)
	if !strings.Contains(" "+verdict+" ", " "+told.Verdict+" ") {
		t.Errorf("the verdict is %s, want %s", told.Verdict, verdict)
	}
	for check, want := range wants {
		if got := told.Checks[check]; len(got) != 2 || got[1] == "" && want != "skipped" || !strings.Contains(" "+want+" ", " "+got[0]+" ") {
			t.Errorf("%s is %q, want %s, and why", check, got, want)
		}
	}
	var lit bool
	if p.mustEval(t, "Boolean(document.querySelector('#checks video').srcObject)", &lit); lit {
		t.Error("the camera is on still")
	}
}

// checkForEverybody has the page judged before, during and after a check.
func checkForEverybody(t *testing.T, base string, by auditor, on ...string) {
	tab, p := openTab(t, "Ada")
	a := &audit{participant: &participant{page: p}, tab: tab, by: by}
	for _, screen := range on {
		t.Run(screen, func(t *testing.T) {
			show(tab, t, screen)
			a.load(t, base+"?"+url.Values{"lang": {languages[screen]}}.Encode())
			a.sees(t, "what is tested", "document.querySelectorAll('#checks li').length === 8 && document.querySelector('#start').textContent !== ''")
			a.judge(t, screen+", before the check")
			a.mustEval(t, "(document.querySelector('#start').click(), true)", nil)
			a.sees(t, "itself", "document.querySelector('#checks video').videoWidth > 0")
			a.judge(t, screen+", during the check")
			eventually(t, 2*time.Minute, "the check is over", func() error {
				var over bool
				if err := p.eval("!document.querySelector('#start').disabled", &over); err != nil || !over {
					return fmt.Errorf("it goes on (%w)", err)
				}
				return nil
			})
			a.judge(t, screen+", after the check")
		})
	}
}
