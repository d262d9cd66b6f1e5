//go:build long

package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// stages is a page's function that joins a room, waits until it shows somebody's picture, and leaves. It returns the milliseconds from the
// opening of the socket to each mark.
const stages = `(() => {
  let mark = () => {};
  for (const name of ['createOffer', 'setLocalDescription', 'setRemoteDescription']) {
    const does = RTCPeerConnection.prototype[name];
    RTCPeerConnection.prototype[name] = async function (...args) {
      if (name === 'setRemoteDescription') mark('answer is being set');
      const result = await does.apply(this, args);
      mark({ createOffer: 'offer made', setLocalDescription: 'offer set', setRemoteDescription: 'answer set' }[name]);
      if (name === 'setRemoteDescription') {
        const { transport } = this.getTransceivers()[0].sender;
        const ice = () => /connected|completed/.test(transport.iceTransport.state) && mark('ICE');
        const dtls = () => transport.state === 'connected' && mark('DTLS');
        transport.iceTransport.onstatechange = ice;
        transport.onstatechange = dtls;
        ice();
        dtls();
      }
      return result;
    };
  }
  globalThis.joinOnce = async (room, name, video) => {
    const { Call } = await import('/holdfast/index.js');
    const marks = {};
    let began = 0;
    const at = (what, when) => { if (began) marks[what] ??= when - began; };
    mark = (what) => at(what, performance.now());
    class Watched extends WebSocket {
      constructor(...args) {
        began = performance.now();
        super(...args);
        this.addEventListener('open', () => mark('socket open'));
        this.addEventListener('message', ({ data }) => {
          const { type, slots } = JSON.parse(data);
          if (type === 'joined' || type === 'answer') mark(type);
          if (type === 'slots' && slots.some(({ source }) => source === 'camera')) mark('slots');
        });
      }
      send(data) {
        const { type } = JSON.parse(data);
        if (type === 'join' || type === 'offer') mark(type + ' said');
        super.send(data);
      }
    }
    const call = new Call({ WebSocket: Watched });
    const clicked = performance.now();
    call.prepare?.(); // As the page does before it fetches a token.
    const { token } = await (await fetch('/api/v1/dev/token?' + new URLSearchParams({ room, name, identity: name }))).json();
    const shown = new Promise((resolve, reject) => {
      call.addEventListener('left', ({ detail }) => reject(new Error(detail.code)));
      setTimeout(() => reject(new Error('no picture in 20 s: ' + JSON.stringify(marks))), 20000);
      call.addEventListener('state', ({ detail }) => detail.state === 'live' && mark('live'));
      call.addEventListener('roster', ({ detail }) => {
        const other = detail.roster.find(({ identity }) => identity !== name);
        if (!other || video.srcObject) return;
        video.srcObject = call.stream(other.peer, 'camera');
        video.requestVideoFrameCallback((now, { receiveTime, presentationTime }) => {
          at('its last packet', receiveTime);
          at('picture', presentationTime);
          resolve();
        });
      });
    });
    try {
      const joined = call.join({ url: location.origin, token, room, name });
      await Promise.all([joined, shown]);
      marks['picture, since the click'] = marks.picture + began - clicked; // The token is between.
      return marks;
    } finally {
      video.srcObject = null;
      call.leave();
      mark = () => {};
    }
  };
  return true;
})()`

// TestStagesOfAJoin prints when each stage of a join ends, from the opening of the socket to the first picture shown, in a room where a
// synthetic person sends 15 frames/s. HOLDFAST_BEFORE names the binary of another build: joins of both take turns then. HOLDFAST_JOINS is the number of each.
func TestStagesOfAJoin(t *testing.T) {
	needChromium(t, 2)
	joins, err := strconv.Atoi(cmp.Or(os.Getenv("HOLDFAST_JOINS"), "20"))
	if err != nil {
		t.Fatal(err)
	}
	builds := map[string]devcluster.Options{"this build": {Binary: os.Getenv("HOLDFAST_NOW")}}
	if before := os.Getenv("HOLDFAST_BEFORE"); before != "" {
		builds[before] = devcluster.Options{Binary: before}
	}
	pages, marks := map[string]*page{}, map[string]map[string][]float64{}
	for name, options := range builds {
		options.SFU, options.Signaling = 1, 1
		c := startCluster(t, options)
		stack, err := peer.NewStack(peer.VideoPortrait)
		if err != nil {
			t.Fatal(err)
		}
		gatherAs(t, c, "stages", 1, peer.Options{Stack: stack})
		// No page of ours, so that nothing else runs in it.
		pages[name], marks[name] = openPage(t, "Vera", c.URL()+"holdfast/version.js"), map[string][]float64{}
		pages[name].mustEval(t, stages, nil)
		pages[name].mustEval(t, "(document.body.prepend(globalThis.video = document.createElement('video')), video.muted = video.autoplay = true)", nil)
	}
	names := slices.Sorted(maps.Keys(builds))
	for i := range joins + 1 {
		for _, name := range names {
			var one map[string]float64
			pages[name].mustEval(t, fmt.Sprintf("joinOnce('stages', 'viewer-%d', video)", i), &one)
			if i == 0 {
				continue // The page loads the library.
			}
			for mark, ms := range one {
				marks[name][mark] = append(marks[name][mark], ms)
			}
			<-time.After(time.Second) // Keyframes may be asked for again.
		}
	}
	for _, name := range names {
		t.Logf("%s, %d joins, ms since the socket was made, p50 / p95:\n%s", name, joins, table(marks[name]))
	}
	if len(marks["this build"]["picture"]) != joins {
		t.Errorf("%d pictures of %d joins", len(marks["this build"]["picture"]), joins)
	}
}

// table has the marks in the order of their medians.
func table(marks map[string][]float64) string {
	at := func(mark string, part int) float64 {
		return marks[mark][min(len(marks[mark])*part/100, len(marks[mark])-1)]
	}
	for _, all := range marks {
		slices.Sort(all)
	}
	order := slices.SortedFunc(maps.Keys(marks), func(a, b string) int { return cmp.Compare(at(a, 50), at(b, 50)) })
	var text strings.Builder
	for _, mark := range order {
		fmt.Fprintf(&text, "%-24s %6.1f / %6.1f\n", mark, at(mark, 50), at(mark, 95))
	}
	return text.String()
}
