//go:build linux

package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// joinWith leaves the page's call and joins another room, sending pictures in a codec. It needs no page around the call.
const joinWith = `(async (room, name, videoCodec) => {
  const { Call } = await import('/holdfast/index.js');
  const { fetchToken } = await import('/page/tokens.js');
  globalThis.call?.leave();
  globalThis.ownStream ??= await navigator.mediaDevices.getUserMedia({ audio: true, video: { width: 640, height: 360, frameRate: 10 } });
  const call = new Call({ videoCodec, audioSlots: 2, videoSlots: 2 });
  globalThis.call = call;
  await call.join({ url: location.origin, token: await fetchToken('', room, name), room, name, stream: globalThis.ownStream });
  return call.peer;
})(%q, %q, %q)`

// whatIsDecoded gives, by peer, what the newest connection decodes of its picture.
const whatIsDecoded = `(async () => {
  const report = await globalThis.__connections.at(-1).getStats();
  const shown = new Map(globalThis.call.slots.filter(({ kind, peer }) => kind === 'video' && peer !== '').map(({ mid, peer }) => [mid, peer]));
  return Object.fromEntries([...report.values()].filter(({ type, mid }) => type === 'inbound-rtp' && shown.has(mid))
    .map(({ mid, codecId, framesDecoded = 0, frameWidth = 0 }) => [shown.get(mid), { frames: framesDecoded, width: frameWidth, codec: report.get(codecId)?.mimeType?.slice(6) ?? '' }]));
})()`

type decoded struct {
	Frames, Width float64
	Codec         string
}

// way is one person's picture at another.
type way struct{ from, to *participant }

// TestCodecMatrix prints who decodes what of whom, in the small and the large layer. What Chromium sends must be decoded by
// Chromium in both, VP8 by everybody. What somebody lacks is sent to all in VP8 instead.
func TestCodecMatrix(t *testing.T) {
	needFirefox(t)
	inside := newNetns(t)
	c := startCluster(t, devcluster.Options{MediaHost: inside.host})
	front := strings.TrimSuffix(strings.TrimPrefix(c.URL(), "http://"), "/")
	people := []*participant{
		{page: openPage(t, "Chromium", c.URL()+"/?"+url.Values{"name": {"Clara"}}.Encode())},
		{page: openPage(t, "another Chromium", c.URL()+"/?"+url.Values{"name": {"Carl"}}.Encode())},
		{page: openFirefox(t, inside, "Firefox", "http://"+inside.forward(t, front)+"/?"+url.Values{"name": {"Felix"}}.Encode())},
	}
	var ways []way
	for _, from := range people {
		for _, to := range people {
			if from != to && to != people[1] {
				ways = append(ways, way{from, to})
			}
		}
	}
	began := time.Now()
	table := fmt.Sprintf("%-40s", "from > to")
	cells := map[way]string{}
	for _, codec := range []string{"VP8", "VP9", "AV1", "H264"} {
		for _, p := range people {
			p.mustEval(t, fmt.Sprintf(joinWith, "matrix-"+codec, p.name, codec), &p.id)
		}
		sent := map[way][]string{}
		for _, width := range []int{320, 640} {
			for w, cell := range decodes(t, ways, width) {
				sent[w] = append(sent[w], cell)
			}
		}
		table += fmt.Sprintf("%-22s", codec)
		for _, w := range ways {
			cells[w] += fmt.Sprintf("%-22s", strings.Join(sent[w], " "))
			bothChromium := w.from != people[2] && w.to != people[2]
			asAsked := strings.Count(strings.Join(sent[w], " "), codec+"/") == 2
			if sent[w][0] == "-" && sent[w][1] == "-" || bothChromium && codec != "H264" && !asAsked {
				t.Errorf("%s of %s at %s: %v", codec, w.from.name, w.to.name, sent[w])
			}
		}
	}
	for _, w := range ways {
		table += fmt.Sprintf("\n%-40s%s", w.from.name+" > "+w.to.name, cells[w])
	}
	t.Logf("decoded, with the width of the layer, in %v:\n%s", time.Since(began).Round(time.Second), table)
}

// decodes asks for each picture in a width and says in which codec frames of that width were decoded, "-" for none.
func decodes(t *testing.T, ways []way, width int) map[way]string {
	t.Helper()
	cells, first := map[way]string{}, map[way]float64{}
	for _, w := range ways {
		cells[w] = "-"
		w.to.mustEval(t, fmt.Sprintf("(globalThis.wants = { ...globalThis.wants, [%q]: { peer: %[1]q, source: 'camera', width: %d, height: %d } }, "+
			"call.setView(Object.values(wants).filter(({ peer }) => call.roster.some((one) => one.peer === peer))))", w.from.id, width, width*9/16), nil)
	}
	for deadline := time.Now().Add(matrixLimit); time.Now().Before(deadline); {
		open := false
		for _, w := range ways {
			if cells[w] != "-" {
				continue
			}
			open = true
			var seen map[string]decoded
			w.to.mustEval(t, whatIsDecoded, &seen)
			switch at := seen[w.from.id]; {
			case at.Width != float64(width):
				delete(first, w)
			case first[w] == 0:
				first[w] = at.Frames
			case at.Frames-first[w] >= someFrames:
				cells[w] = fmt.Sprintf("%s/%d", at.Codec, width)
			}
		}
		if !open {
			break
		}
	}
	return cells
}

// matrixLimit is how long one codec's layer may take to be shown everywhere.
const matrixLimit = 5 * time.Second
