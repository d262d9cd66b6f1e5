package web_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/web"
)

// result is what testdata/tests/harness.js reports of one case.
type result struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// site serves the library as it is embedded, the browser tests, the golden messages of the signaling package, and the configuration
// of a cluster with invitations, to a browser with the cookie without-invite of one without.
func site(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(web.Static()))
	mux.Handle("/tests/", http.StripPrefix("/tests/", http.FileServerFS(os.DirFS("testdata/tests"))))
	mux.Handle("/golden/", http.StripPrefix("/golden/", http.FileServerFS(os.DirFS("../signaling/wire/testdata"))))
	mux.HandleFunc("/api/v1/config", func(w http.ResponseWriter, r *http.Request) {
		config := `{"dev":false,"protocol":1,"invite":"https://app.example.org/join/{room}"}`
		if _, err := r.Cookie("without-invite"); err == nil {
			config = `{"dev":false,"protocol":1}`
		}
		_, _ = w.Write([]byte(config))
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// browser starts one headless Chromium for the test, with fake devices.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := tool.Find(t, "chromium")
	const shell = "/usr/lib/chromium/chromium-headless-shell"
	if _, err := os.Stat(shell); err == nil {
		path = shell // the same engine; it starts in a quarter of the CPU time
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.NoFirstRun,
		chromedp.Flag("headless", "new"),
		chromedp.Flag("accept-lang", "en-US"),
		chromedp.Flag("no-sandbox", true),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-features", "WebRtcHideLocalIpsWithMdns"),
		chromedp.Flag("allow-loopback-in-peer-connection", true),
		chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"),
		chromedp.Flag("js-flags", "--expose-gc"),
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Logf("close the browser: %v", err)
		}
		cancel()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start the browser: %v", err)
	}
	return ctx
}

// browsersAtOnce: most cases wait most of the time.
const browsersAtOnce = 3

// TestInBrowser runs every testdata/tests/*.test.js in a browser of its own, since a tab behind another is slowed down, and
// reports each of its cases as a subtest.
func TestInBrowser(t *testing.T) {
	files, err := fs.Glob(os.DirFS("testdata/tests"), "*.test.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the browser tests: %v (%d files)", err, len(files))
	}
	server := site(t)
	turn := make(chan struct{}, browsersAtOnce)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			turn <- struct{}{}
			defer func() { <-turn }()
			for _, result := range runFile(browser(t), t, server.URL+"/tests/run.html?file="+file) {
				t.Run(result.Name, func(t *testing.T) {
					if result.Error != "" {
						t.Error(result.Error)
					}
				})
			}
		})
	}
}

func runFile(browser context.Context, t *testing.T, address string) []result {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	defer closeTab()
	tab, cancel := context.WithTimeout(tab, 4*time.Minute)
	defer cancel()
	if err := chromedp.Do(tab, chromedp.Navigate(address)); err != nil {
		t.Fatalf("open %s: %v", address, err)
	}
	results, err := chromedp.Run(tab, chromedp.Evaluate[[]result]("window.results", chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("run %s: %v", address, err)
	}
	if len(results) == 0 {
		t.Fatalf("run %s: no case ran", address)
	}
	return results
}
