//go:build long

package e2e

import (
	"net/url"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// withoutAV1 makes a browser of one that cannot decode AV1, and notes what the page says meanwhile.
const withoutAV1 = `(() => {
  const known = RTCRtpReceiver.getCapabilities.bind(RTCRtpReceiver);
  RTCRtpReceiver.getCapabilities = (kind) => {
    const found = known(kind);
    return { ...found, codecs: found.codecs.filter(({ mimeType }) => mimeType !== 'video/AV1') };
  };
  globalThis.noted = { said: [], faces: 0, weak: 0 };
  setInterval(() => {
    const tile = document.querySelector('.tile:not(.self)');
    const said = tile?.querySelector('.held').textContent;
    if (said && !noted.said.includes(said)) noted.said.push(said);
    if (said && tile.matches('.dark') && tile.querySelector('.face').checkVisibility()) noted.faces++;
    if (document.querySelector('.tile.self')?.dataset.quality === 'weak') noted.weak++;
  }, 20);
})()`

// TestAPictureThatCannotBeDecoded: who lacks a codec sees the sender's avatar and which codec it is, until the sender sends
// another one. Nobody's own connection is blamed.
func TestAPictureThatCannotBeDecoded(t *testing.T) {
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	tab, p := openTab(t, "Alan")
	alan := &participant{page: p}
	if _, err := chromedp.Call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watchConnections + ";" + withoutAV1}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate(callAddress(c.URL(), "codec", "Alan", nil))); err != nil {
		t.Fatal(err)
	}
	alan.knowsItself(t)
	ada := join(t, c.URL(), "codec", "Ada", url.Values{"codec": {"AV1"}})
	ada.knowsItself(t)
	allDecodeAll(t, time.Minute, []*participant{ada, alan})
	ada.sees(t, "why its codec changed", `document.querySelector('#notices').textContent.includes('AV1')`)
	var noted struct {
		Said        []string
		Faces, Weak int
	}
	alan.mustEval(t, "noted", &noted)
	if len(noted.Said) != 1 || noted.Said[0] != "This browser cannot show AV1 video. Another kind was requested; if none comes, use another browser." || noted.Faces == 0 || noted.Weak > 0 {
		t.Errorf("Alan's page showed %+v", noted)
	}
}
