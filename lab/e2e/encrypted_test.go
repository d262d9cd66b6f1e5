package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"net/url"
	"sync"
	"syscall"
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

// TestEncryptedCall has two people with one key, one with another and one with none. The node is killed: Ada keeps her
// connection, Alan's browser rejects the answer and takes a new one.
func TestEncryptedCall(t *testing.T) {
	needChromium(t)
	c := startCluster(t, devcluster.Options{})
	room, key := roomOn(t, "sfu-1", "sealed"), newKey()
	ada := join(t, c.URL(), room, "Ada", withKey(key, nil))
	alan := join(t, c.URL(), room, "Alan", withKey(key, url.Values{"rejectAnswers": {"1"}}))
	eve := join(t, c.URL(), room, "Eve", withKey(newKey(), nil))
	mallory := join(t, c.URL(), room, "Mallory", nil)
	for _, p := range []*participant{ada, alan, eve, mallory} {
		p.knowsItself(t)
	}
	ada.sees(t, "that the call is encrypted", `!document.querySelector('#encrypted').hidden && !location.hash`)
	inside := []*participant{ada, alan}
	allDecodeAll(t, time.Minute, inside)
	strangers := func() {
		t.Helper()
		for _, sender := range inside {
			eve.sees(t, "why there is no picture of "+sender.name, heldText(sender)+`.startsWith('Encrypted with another key')`)
			mallory.sees(t, "why there is no picture of "+sender.name, heldText(sender)+`.startsWith('This picture cannot be decoded. If the call is encrypted')`)
			for _, p := range []*participant{eve, mallory} {
				p.decodesNothingOf(t, sender)
			}
		}
		ada.sees(t, "that Mallory does not encrypt", heldText(mallory)+`.startsWith('Not shown: not encrypted')`)
		ada.decodesNothingOf(t, mallory)
	}
	strangers()

	for _, p := range inside {
		p.mark(t)
	}
	before := map[*participant]callStats{ada: ada.mustStats(t), alan: alan.mustStats(t)}
	if err := c.Kill(t.Context(), heldOnce(t, c, room).Node, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for p, how := range map[*participant]string{ada: "restart", alan: "new-connection"} {
		eventually(t, 30*time.Second, p.name+" is moved", func() error { return moved(p, before[p], how) })
		t.Logf("gap of %s: %v (%s)", p.name, p.mustStats(t).lastGap(), how)
	}
	allDecodeAll(t, 30*time.Second, inside)
	ada.unchanged(t)
	alan.sameElements(t)
	strangers()
}

// TestNodeSeesNoise compares what the node forwards of an encrypted call with what it forwards of another one.
func TestNodeSeesNoise(t *testing.T) {
	needChromium(t)
	c := startCluster(t, devcluster.Options{})
	for _, encrypted := range []bool{false, true} {
		var extra url.Values
		if encrypted {
			extra = withKey(newKey(), nil)
		}
		room := fmt.Sprintf("tapped-%v", encrypted)
		wire := &tap{}
		listen(t, c, room, wire.hear)
		ada := join(t, c.URL(), room, "Ada", extra)
		ada.knowsItself(t)
		eventually(t, time.Minute, "enough is forwarded", wire.enough)
		for _, audio := range []bool{true, false} {
			if err := wire.noise(audio); (err == nil) != encrypted {
				t.Errorf("audio %v, encrypted %v: %v", audio, encrypted, err)
			}
		}
		ada.mustEval(t, "(window.call.leave(), true)", nil)
	}
}

// TestFirefoxAndChromiumEncrypted kills the node of an encrypted call between both browsers.
func TestFirefoxAndChromiumEncrypted(t *testing.T) {
	needFirefox(t)
	c, room, fox, chrome := bothBrowsers(t, newNetns(t), withKey(newKey(), nil))
	for _, p := range []*participant{fox, chrome} {
		p.sees(t, "that the call is encrypted", `!document.querySelector('#encrypted').hidden`)
	}
	killUnder(t, c, room, fox, chrome)
}

// listen lets somebody join who only listens, and shows what comes of the others.
func listen(t *testing.T, c *devcluster.Cluster, room string, payload func(audio bool, payload []byte)) {
	t.Helper()
	token, err := c.Token(room, "listener")
	if err != nil {
		t.Fatal(err)
	}
	p, err := peer.New(peer.Options{URL: c.URL(), Token: token, Room: room, ListenOnly: true, Payload: payload}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	wg.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Errorf("the listener of %s: %v", room, err)
		}
	})
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
