package e2e

import (
	"net/url"
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// watchTalk notes what the page says to a server and hears, with the milliseconds since it was asked to join. The page hears that it has joined only
// once it has said an offer, or 10 s later: on a busy machine the answer to the join may be faster than a page makes an offer.
const watchTalk = `(() => {
  globalThis.talk = [];
  const began = performance.now();
  const note = (way, data) => {
    const { type } = JSON.parse(data);
    talk.push({ way, type, ms: performance.now() - began, bytes: data.length });
    return type;
  };
  let offered;
  const offer = new Promise((resolve) => (offered = resolve));
  let before = Promise.resolve();
  globalThis.WebSocket = class extends WebSocket {
    set onmessage(hear) {
      super.onmessage = hear && ((event) => {
        before = before.then(async () => {
          if (JSON.parse(event.data).type === 'joined') await Promise.race([offer, new Promise((resolve) => setTimeout(resolve, 10000))]);
          note('heard', event.data);
          hear(event);
        });
      });
    }
    send(data) {
      if (note('said', data) === 'offer') offered();
      super.send(data);
    }
  };
  document.querySelector('#join').requestSubmit();
  return true;
})()`

// TestTheFirstOfferDoesNotWait: the page says its offer behind the join, so that media needs one round trip to the server less. Until the
// answer it says and hears nothing else that somebody waits for.
func TestTheFirstOfferDoesNotWait(t *testing.T) {
	t.Parallel()
	needChromium(t, 1)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	ada := openPage(t, "Ada", callAddress(c.URL(), "prompt", "Ada", url.Values{"autojoin": {"0"}}))
	ada.sees(t, "itself", `document.querySelector('#preview').videoWidth > 0`)
	ada.mustEval(t, watchTalk, nil)
	ada.sees(t, "the call", `globalThis.call?.state === 'live' && talk.some(({ type }) => type === 'answer')`)
	var talk []struct {
		Way, Type string
		Ms        float64
		Bytes     int
	}
	ada.mustEval(t, "talk", &talk)
	turns, offers, last := 0, 0, ""
	for _, m := range talk {
		if !slices.Contains([]string{"join", "joined", "offer", "answer"}, m.Type) {
			continue
		}
		t.Logf("%6.1f ms  %s %s, %d bytes", m.Ms, m.Way, m.Type, m.Bytes)
		if m.Way == "said" && last != "said" {
			turns++
		}
		if m.Type == "offer" {
			offers++
		}
		last = m.Way
	}
	if turns != 1 || offers != 1 {
		t.Errorf("the page took %d turns and said %d offers until its answer, want one of each", turns, offers)
	}
}
