package e2e

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// withKey is what a link to an encrypted call has more than others.
func withKey(key string, more url.Values) url.Values {
	q := url.Values{"key": {key}}
	maps.Copy(q, more)
	return q
}

func newKey() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // It never fails.
	return base64.RawURLEncoding.EncodeToString(secret)
}

// TestEncryptedCall has two people with one key, one with another and one with none. What the node forwards of who has a
// key is noise. The node is killed: Ada keeps her connection, Alan's browser rejects the answer and takes a new one.
func TestEncryptedCall(t *testing.T) {
	t.Parallel()
	needChromium(t, 4)
	c := startCluster(t, devcluster.Options{})
	room, key := roomOn(t, "sfu-1", "sealed"), newKey()
	ada := join(t, c.URL(), "tapped-sealed", "Ada", withKey(key, nil))
	mallory := join(t, c.URL(), "tapped-plain", "Mallory", nil)
	for p, encrypted := range map[*participant]bool{ada: true, mallory: false} {
		wire := &tap{}
		p.knowsItself(t)
		gatherAs(t, c, map[bool]string{true: "tapped-sealed", false: "tapped-plain"}[encrypted], 1, peer.Options{ListenOnly: true, Payload: wire.hear})
		eventually(t, time.Minute, "enough is forwarded", wire.enough)
		for _, audio := range []bool{true, false} {
			if err := wire.noise(audio); (err == nil) != encrypted {
				t.Errorf("audio %v, encrypted %v: %v", audio, encrypted, err)
			}
		}
	}
	alan := join(t, c.URL(), room, "Alan", withKey(key, url.Values{"rejectAnswers": {"1"}}))
	eve := join(t, c.URL(), room, "Eve", withKey(newKey(), nil))
	ada.visit(t, callAddress(c.URL(), room, "Ada", withKey(key, nil)), "globalThis.call")
	mallory.visit(t, callAddress(c.URL(), room, "Mallory", nil), "globalThis.call")
	for _, p := range []*participant{ada, alan, eve, mallory} {
		p.knowsItself(t)
	}
	ada.sees(t, "that the call is encrypted", `!document.querySelector('#encrypted').hidden && !location.hash`)
	inside := []*participant{ada, alan}
	allDecodeAll(t, time.Minute, inside)
	strangers := func() {
		t.Helper()
		for _, sender := range inside {
			eve.sees(t, "why there is no picture of "+sender.name, heldText(sender)+`.startsWith('Encrypted with a different key')`)
			mallory.sees(t, "why there is no picture of "+sender.name, heldText(sender)+`.startsWith('This video cannot be shown. If the call is encrypted')`)
			for _, p := range []*participant{eve, mallory} {
				p.decodesNothingOf(t, sender)
			}
		}
		mallory.sees(t, "what to do without a key", `[...document.querySelectorAll('.notice')].some((one) => /^You cannot hear or see .*Alan/.test(one.textContent) && one.textContent.includes('no key'))`)
		ada.sees(t, "that Mallory does not encrypt", heldText(mallory)+`.startsWith('Not shown: not encrypted')`)
		ada.decodesNothingOf(t, mallory)
	}
	strangers()

	for _, p := range inside {
		p.mark(t)
	}
	before := map[*participant]callStats{ada: ada.mustStats(t), alan: alan.mustStats(t)}
	kill(t, c, heldOnce(t, c, room).Node)
	for p, how := range map[*participant]string{ada: "restart", alan: "new-connection"} {
		p.awaitsMove(t, before[p], how)
	}
	allDecodeAll(t, 30*time.Second, inside)
	ada.unchanged(t)
	alan.sameElements(t)
	strangers()

	// What one of the four cannot decode is that stream's trouble: nobody's connection is renewed for it.
	everybody := []*participant{ada, alan, eve, mallory}
	offered := map[*participant]callStats{}
	for _, p := range everybody {
		offered[p] = p.mustStats(t)
	}
	for _, sender := range inside {
		mallory.sees(t, "that "+sender.name+" is given up", fmt.Sprintf("call.undecodable.some((one) => one.peer === %q && one.source === 'camera')", sender.id))
	}
	for _, p := range everybody {
		if now := p.mustStats(t); now.PcID != offered[p].PcID || now.OffersSent != offered[p].OffersSent {
			t.Errorf("%s had connection %d and %d offers, and has %d and %d", p.name, offered[p].PcID, offered[p].OffersSent, now.PcID, now.OffersSent)
		}
		p.sees(t, "a call that goes on", "call.state === 'live' && document.querySelector('#banner').hidden")
	}
}

func heldText(p *participant) string {
	return fmt.Sprintf("document.querySelector('.tile[data-key=%q] .held').textContent", p.id)
}

// decodesNothingOf fails when one frame of somebody was decoded in this connection, or a second of sound was more than concealment.
func (p *participant) decodesNothingOf(t *testing.T, sender *participant) {
	t.Helper()
	f := p.mustStats(t).flowFrom(sender.id)
	if f.packets == 0 {
		t.Errorf("%s: no packet came of %s", p.name, sender.name)
	}
	if played := f.total - f.concealed; f.frames > 0 || played > 48000 {
		t.Errorf("%s: decoded %g frames and %g samples of %s", p.name, f.frames, played, sender.name)
	}
}
