//go:build long

package e2e

import (
	"net/url"
	"slices"
	"testing"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// firstLoad is what a browser that was never here loads before the call, by its own count.
type firstLoad struct {
	Requests                      int
	PageBytes, LibraryBytes       int // over the network, headers included
	PageContents, LibraryContents int // unpacked
	PictureMs                     float64
}

// notePicture notes when the preview shows its first frame, in ms from the start of the navigation.
const notePicture = `addEventListener('DOMContentLoaded', () => {
  document.querySelector('#preview').requestVideoFrameCallback((now) => { globalThis.pictureMs = now; });
})`

const loaded = `(() => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource').filter(({ name }) => !name.includes('/api/'))];
  const sum = (library, field) => all.filter(({ name }) => new URL(name).pathname.startsWith('/holdfast/') === library).reduce((bytes, one) => bytes + one[field], 0);
  return { requests: all.length, pageBytes: sum(false, 'transferSize'), libraryBytes: sum(true, 'transferSize'),
    pageContents: sum(false, 'decodedBodySize'), libraryContents: sum(true, 'decodedBodySize'), pictureMs: globalThis.pictureMs };
})()`

// TestFirstLoad prints the bytes of page and library on the first load, and the time until one sees one's own camera, in
// browsers that were never here.
func TestFirstLoad(t *testing.T) {
	needChromium(t, 1)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	var times []float64
	var load firstLoad
	for range 9 {
		t.Run("a new browser", func(t *testing.T) {
			tab, p := openTab(t, "Ada")
			if _, err := chromedp.Call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: notePicture}); err != nil {
				t.Fatal(err)
			}
			if err := chromedp.Do(tab, chromedp.Navigate(callAddress(c.URL(), "load", "", url.Values{"autojoin": {"0"}}))); err != nil {
				t.Fatal(err)
			}
			p.sees(t, "itself", "globalThis.pictureMs > 0")
			p.mustEval(t, loaded, &load)
			times = append(times, load.PictureMs)
		})
	}
	slices.Sort(times)
	t.Logf("%d requests; page %d bytes (unpacked %d), library %d (%d); first picture of the camera after %.0f ms (p50), %.0f to %.0f",
		load.Requests, load.PageBytes, load.PageContents, load.LibraryBytes, load.LibraryContents, times[len(times)/2], times[0], times[len(times)-1])
	// Twice what it is today would be another page.
	if total := load.PageBytes + load.LibraryBytes; total == 0 || total > 1<<20 {
		t.Errorf("the first load is %d bytes", total)
	}
}
