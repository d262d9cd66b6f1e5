//go:build long

package e2e

import (
	"net/url"
	"os"
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
// browsers that were never here. HOLDFAST_BEFORE names the binary of another build: browsers of both take turns then.
func TestFirstLoad(t *testing.T) {
	needChromium(t, 1)
	builds := map[string]devcluster.Options{"this build": {}}
	if before := os.Getenv("HOLDFAST_BEFORE"); before != "" {
		builds[before] = devcluster.Options{Binary: before}
	}
	addresses, times, loads := map[string]string{}, map[string][]float64{}, map[string]firstLoad{}
	for name, options := range builds {
		options.SFU, options.Signaling = 1, 1
		addresses[name] = startCluster(t, options).URL()
	}
	for range 9 {
		for name, address := range addresses {
			t.Run("a new browser", func(t *testing.T) {
				loads[name] = loadFirst(t, address)
				times[name] = append(times[name], loads[name].PictureMs)
			})
		}
	}
	for name, took := range times {
		slices.Sort(took)
		load := loads[name]
		t.Logf("%s: %d requests; page %d bytes (unpacked %d), library %d (%d); first picture of the camera after %.0f ms (p50), %.0f to %.0f",
			name, load.Requests, load.PageBytes, load.PageContents, load.LibraryBytes, load.LibraryContents, took[len(took)/2], took[0], took[len(took)-1])
	}
	// Twice what it is today would be another page.
	load := loads["this build"]
	if total := load.PageBytes + load.LibraryBytes; total == 0 || total > 1<<20 {
		t.Errorf("the first load is %d bytes", total)
	}
}

func loadFirst(t *testing.T, address string) (load firstLoad) {
	t.Helper()
	tab, p := openTab(t, "Ada")
	if _, err := chromedp.Call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: notePicture}); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate(callAddress(address, "load", "", url.Values{"autojoin": {"0"}}))); err != nil {
		t.Fatal(err)
	}
	p.sees(t, "itself", "globalThis.pictureMs > 0")
	p.mustEval(t, "Promise.all(['/page/stage.js', '/holdfast/index.js'].map((name) => import(name))).then(() => true)", nil)
	p.mustEval(t, loaded, &load)
	return load
}
