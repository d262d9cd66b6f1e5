package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/browser"
)

// page is one browser process with one page in it: a browser throttles pages that are not in front.
type page struct {
	name string
	run  func(ctx context.Context, script string) (string, error)

	mu      sync.Mutex
	console []string // guarded by mu; the last lines only
}

const (
	consoleLines = 200 // the oldest are dropped
	evalLimit    = time.Minute
)

func chromiumFlags(dir string) []chromedp.ExecAllocatorOption {
	return browser.Flags(browser.Path(), dir)
}

// atOnce is what two cores can do at a time: as many browsers, beside their clusters. More of them take no less time, and are late.
const atOnce = 4

var machine = shares{free: atOnce}

// shares are given to the largest test that fits, so that none lies idle while a large one waits.
type shares struct {
	mu      sync.Mutex // guards the fields below
	free    int
	waiting []queued // the largest first
}

type queued struct {
	share   int
	granted chan struct{}
}

func (s *shares) take(share int) {
	w := queued{share, make(chan struct{})}
	s.mu.Lock()
	after := slices.IndexFunc(s.waiting, func(other queued) bool { return other.share < share })
	if after < 0 {
		after = len(s.waiting)
	}
	s.waiting = slices.Insert(s.waiting, after, w)
	s.mu.Unlock()
	s.release(0)
	<-w.granted
}

func (s *shares) release(share int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free += share
	s.waiting = slices.DeleteFunc(s.waiting, func(w queued) bool {
		if w.share > s.free {
			return false
		}
		s.free -= w.share
		close(w.granted)
		return true
	})
}

// takes waits until the machine has time for what is as much as so many browsers, and keeps it until the test ends: what
// is late because others were busy proves nothing.
func takes(t *testing.T, browsers int) {
	t.Helper()
	share := min(browsers, atOnce)
	machine.take(share)
	t.Cleanup(func() { machine.release(share) })
}

// needChromium also fails or skips where there is none.
func needChromium(t *testing.T, browsers int) {
	t.Helper()
	tool.Find(t, "chromium")
	takes(t, browsers)
}

// openPage starts a browser on the address; the browser ends with the test.
func openPage(t *testing.T, name, address string) *page {
	t.Helper()
	return openPageIn(t, browser.Path(), name, address)
}

// openPageIn starts the browser at path.
func openPageIn(t *testing.T, path, name, address string) *page {
	t.Helper()
	p := &page{name: name}
	opened, err := browser.OpenAt(t.Context(), path, address, watchConnections, p.note)
	if err != nil {
		t.Fatalf("open the browser of %s: %v", name, err)
	}
	p.run = opened.Run
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console of %s:\n%s", name, p.consoleText())
		}
		opened.Close()
	})
	return p
}

// listen keeps the last lines of the console; it ends with the browser.
func (p *page) listen(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return
		}
		p.note(string(m.Type) + ": " + m.Text)
	}
}

func (p *page) note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.console = append(p.console, line)
	if len(p.console) > consoleLines {
		p.console = p.console[1:]
	}
}

func (p *page) consoleText() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.console, "\n")
}

// eval runs an expression (a promise is awaited) and decodes its JSON value.
func (p *page) eval(expression string, into any) error {
	return p.evalWithin(evalLimit, expression, into)
}

func (p *page) evalWithin(limit time.Duration, expression string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	script := "(async () => JSON.stringify(await (" + expression + ")) ?? 'null')()"
	text, err := p.run(ctx, script)
	if err != nil {
		return fmt.Errorf("evaluate %s in %s: %w", expression, p.name, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("decode what %s gave for %s: %w", p.name, expression, err)
	}
	return nil
}

func (p *page) mustEval(t *testing.T, expression string, into any) {
	t.Helper()
	if err := p.eval(expression, into); err != nil {
		t.Fatal(err)
	}
}

// visit opens another address in the page, and waits until a condition holds there.
func (p *page) visit(t *testing.T, address, condition string) {
	t.Helper()
	p.mustEval(t, fmt.Sprintf("(setTimeout(() => location.assign(%q)), true)", address), nil)
	eventually(t, time.Minute, p.name+" opens "+address, func() error {
		var there bool
		err := p.eval(fmt.Sprintf("location.href.startsWith(%q) && Boolean(%s)", strings.SplitN(address, "#", 2)[0], condition), &there)
		if err == nil && !there {
			err = errors.New("not there")
		}
		return err
	})
}

// watchConnections shows a test every RTCPeerConnection of a page. With via=IP:PORT in the page's address the
// connections use that instead of the node's; with feedback=none besides they do not say when packets arrive. With relay=tcp they reach nothing but TURN over that transport. Sound is
// not cleaned of echo and noise: that would take a fifth of what a browser costs here.
const watchConnections = `
  globalThis.__connections = [];
  const via = new URLSearchParams(location.search).get('via');
  const elsewhere = (text) => text.replace(/^((?:a=)?candidate:\S+ \d+ \S+ \d+) \S+ \d+/gm, '$1 ' + via.replace(':', ' '));
  const deaf = new URLSearchParams(location.search).get('feedback') === 'none';
  const raw = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
  const devices = globalThis.MediaDevices?.prototype;
  const open = devices?.getUserMedia;
  if (open) devices.getUserMedia = function (wanted) {
    return open.call(this, wanted?.audio ? { ...wanted, audio: { ...Object(wanted.audio), ...raw } } : wanted);
  };
  const relay = new URLSearchParams(location.search).get('relay');
  const behindFirewall = (configuration) => (relay ? { ...configuration, iceTransportPolicy: 'relay', iceServers: configuration.iceServers.map(({ urls, ...rest }) => ({ ...rest, urls: urls.filter((url) => url.endsWith('=' + relay)) })) } : configuration);
  globalThis.RTCPeerConnection = class extends globalThis.RTCPeerConnection {
    constructor(configuration, ...args) { super(behindFirewall(configuration), ...args); globalThis.__connections.push(this); }
    setConfiguration(configuration) { super.setConfiguration(behindFirewall(configuration)); }
    // The pair that is never checked keeps its port: another pair may have the address.
    addIceCandidate({ candidate, ...rest }) {
      return super.addIceCandidate({ candidate: via && !candidate.includes('unchecked') ? elsewhere(candidate) : candidate, ...rest });
    }
    setRemoteDescription(description) {
      if (!via) return super.setRemoteDescription(description);
      let sdp = elsewhere(description.sdp);
      if (deaf) sdp = sdp.replace(/^a=(rtcp-fb:\d+ transport-cc|extmap:.*transport-wide-cc.*)\r\n/gm, '');
      return super.setRemoteDescription({ type: description.type, sdp });
    }
  };`

// callAddress asks for a small picture, which two cores encode for five people. A token and a key stand behind the #.
func callAddress(base, room, name string, extra url.Values) string {
	q := url.Values{
		"room": {room}, "name": {name}, "autojoin": {"1"},
		"width": {"320"}, "height": {"180"}, "fps": {"10"}, "simulcast": {"0"}, "audio": {"4"}, "video": {"4"},
	}
	maps.Copy(q, extra)
	secrets := url.Values{}
	for _, name := range []string{"token", "key"} {
		if q.Has(name) {
			secrets.Set(name, q.Get(name))
			q.Del(name)
		}
	}
	address := strings.TrimSuffix(base, "/") + "/?" + q.Encode()
	if len(secrets) > 0 {
		address += "#" + secrets.Encode()
	}
	return address
}

// eventually polls until the condition gives no error; its last error is what the test fails with.
func eventually(t *testing.T, limit time.Duration, what string, condition func() error) {
	t.Helper()
	testkit.Within(t, limit, what, condition)
}
