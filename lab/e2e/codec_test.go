//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
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

// codecMatrix prints who decodes what of whom, in the small and the large layer. What Chromium sends must be decoded by
// Chromium in both, VP8 by everybody. What somebody lacks is sent to all in VP8 instead.
func codecMatrix(t *testing.T, b *mixed) {
	another := &participant{page: openPage(t, "another Chromium", b.c.URL()+"?name=Carl")}
	people := []*participant{b.chrome, another, b.fox}
	for _, p := range people {
		p.sees(t, "the lobby", `document.querySelector('#enter')`)
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
			decodes(t, codec, ways, width, sent)
		}
		table += fmt.Sprintf("%-22s", codec)
		for _, w := range ways {
			cells[w] += fmt.Sprintf("%-22s", strings.Join(sent[w], " "))
			if faulty(codec, w, sent[w]) {
				t.Errorf("%s of %s at %s: %v", codec, w.from.name, w.to.name, sent[w])
			}
		}
	}
	for _, w := range ways {
		table += fmt.Sprintf("\n%-40s%s", w.from.name+" > "+w.to.name, cells[w])
	}
	t.Logf("decoded, with the width of the layer, in %v:\n%s", time.Since(began).Round(time.Second), table)
}

// faulty says whether what was decoded of a way so far is less than must be.
func faulty(codec string, w way, sent []string) bool {
	bothChromium := w.from.name != "Felix" && w.to.name != "Felix"
	if bothChromium && codec != "H264" {
		return strings.Count(strings.Join(sent, " "), codec+"/") != len(sent)
	}
	return len(sent) == 2 && sent[0] == "-" && sent[1] == "-"
}

// decodes asks for each picture in a width and adds in which codec frames of that width were decoded, "-" for none. It
// waits for what need not be for matrixPatience only.
func decodes(t *testing.T, codec string, ways []way, width int, sent map[way][]string) {
	t.Helper()
	first := map[way]float64{}
	for _, w := range ways {
		sent[w] = append(sent[w], "-")
		w.to.mustEval(t, fmt.Sprintf("(globalThis.wants = { ...globalThis.wants, [%q]: { peer: %[1]q, source: 'camera', width: %d, height: %d } }, "+
			"call.setView(Object.values(wants).filter(({ peer }) => call.roster.some((one) => one.peer === peer))))", w.from.id, width, width*9/16), nil)
	}
	for began := time.Now(); time.Since(began) < matrixLimit; {
		open, wrong := false, false
		for _, w := range ways {
			cell := &sent[w][len(sent[w])-1]
			if *cell == "-" {
				open = true
				var seen map[string]decoded
				w.to.mustEval(t, whatIsDecoded, &seen)
				switch at := seen[w.from.id]; {
				case at.Width != float64(width):
					delete(first, w)
				case first[w] == 0:
					first[w] = at.Frames
				case at.Frames-first[w] >= someFrames:
					*cell = fmt.Sprintf("%s/%d", at.Codec, width)
				}
			}
			wrong = wrong || faulty(codec, w, sent[w])
		}
		if !open || !wrong && time.Since(began) > matrixPatience {
			return
		}
	}
}

// How long a codec's layer may take to be shown where it must be, and where it may be.
const (
	matrixLimit    = 30 * time.Second
	matrixPatience = 3 * time.Second
)
