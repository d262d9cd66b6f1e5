// Package browser drives a headless Chromium with fake devices, one process a page: a browser throttles pages in the background.
//
// It promises that a page's lines of the console are heard, and that the process and its profile are gone after Close. It knows
// nothing of Holdfast's page: a caller gives the address and the scripts. It is the only package that knows the browser's protocol.
// Begin with Open.
package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

// ErrNoChromium means that no Chromium is installed.
var ErrNoChromium = errors.New("no chromium on this machine")

// The script leaves the browser behind when it is killed.
const shellScript, shell = "/usr/bin/chromium-headless-shell", "/usr/lib/chromium/chromium-headless-shell"

// Path prefers the headless shell, which starts faster. It may be empty.
func Path() string {
	path := found("chromium-headless-shell")
	if path == shellScript {
		path = cmp.Or(found(shell), path)
	}
	return cmp.Or(path, Whole())
}

// Whole is the whole Chromium, or empty.
func Whole() string {
	return cmp.Or(found("chromium"), found("chromium-browser"), found("google-chrome"))
}

func found(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// Page is one browser process.
type Page struct {
	tab   context.Context //nolint:containedctx // chromedp's handle of a browser is a context
	close func()
}

// Open is OpenAt of the browser at Path.
func Open(ctx context.Context, address, script string, heard func(line string)) (*Page, error) {
	return OpenAt(ctx, Path(), address, script, heard)
}

// OpenAt runs the script before the page's own. heard, which may be nil, gets console lines from another goroutine.
// The browser lives until Close, even if ctx ends.
func OpenAt(ctx context.Context, path, address, script string, heard func(line string)) (*Page, error) {
	if path == "" {
		return nil, ErrNoChromium
	}
	profile, err := os.MkdirTemp("", "holdfast-browser-")
	if err != nil {
		return nil, fmt.Errorf("make the browser's directory: %w", err)
	}
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.WithoutCancel(ctx), Flags(path, profile)...)
	tab, cancelTab := chromedp.NewContext(alloc)
	p := &Page{tab: tab, close: func() {
		_ = chromedp.Cancel(tab)
		cancelTab()
		cancelAlloc()
		_ = os.RemoveAll(profile)
	}}
	_, err = chromedp.Call(tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	if err != nil {
		p.close()
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	var changed atomic.Bool
	go listen(chromedp.Console(tab), func(line string) {
		if strings.Contains(line, networkChanged) {
			changed.Store(true)
		}
		if heard != nil {
			heard(line)
		}
	})
	for tries := 0; tries == 0 || tries < loads && changed.Load(); tries++ {
		changed.Store(false)
		// chromedp.Navigate can miss its load event.
		if _, err := chromedp.Call(tab, cdppage.Navigate, cdppage.NavigateParams{URL: address}); err != nil {
			p.close()
			return nil, fmt.Errorf("open %s: %w", address, err)
		}
		p.loaded(ctx)
	}
	return p, nil
}

// Chromium aborts loads when a network interface comes or goes.
const (
	networkChanged = "net::ERR_NETWORK_CHANGED"
	loads          = 3
	loadLimit      = 30 * time.Second
)

func (p *Page) loaded(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loadLimit)
	defer cancel()
	for complete := false; !complete; {
		if err := p.Eval(ctx, `location.href !== 'about:blank' && document.readyState === 'complete'`, &complete); err != nil {
			complete = false // a replaced page ends its scripts
		}
		if !complete && !backoff.Sleep(ctx, 50*time.Millisecond) {
			return
		}
	}
}

func listen(messages iter.Seq2[chromedp.ConsoleMessage, error], heard func(string)) {
	for m, err := range messages {
		if err != nil {
			return
		}
		heard(string(m.Type) + ": " + m.Text)
	}
}

// Run evaluates a script that promises a string.
func (p *Page) Run(ctx context.Context, script string) (string, error) {
	within, cancel := context.WithCancel(p.tab)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return chromedp.Run(within, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise)) //nolint:contextcheck // as above
}

// Eval awaits an expression and decodes its JSON value.
func (p *Page) Eval(ctx context.Context, expression string, into any) error {
	text, err := p.Run(ctx, "(async () => JSON.stringify(await ("+expression+")) ?? 'null')()")
	if err != nil {
		return fmt.Errorf("evaluate %s: %w", expression, err)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("decode the value of %s: %w", expression, err)
	}
	return nil
}

// Close ends the browser.
func (p *Page) Close() { p.close() }

// Flags are a headless Chromium's, as root.
func Flags(path, profile string) []chromedp.ExecAllocatorOption {
	return []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.UserDataDir(profile),
		chromedp.Flag("headless", "new"),
		chromedp.Flag("accept-lang", "en-US"),
		chromedp.Flag("no-sandbox", true),
		chromedp.Flag("allow-loopback-in-peer-connection", true),
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("no-first-run", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("use-fake-device-for-media-stream", true),
		chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"),
		chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("disable-background-timer-throttling", true),
		// One process less: a fifth of the cost of audio.
		chromedp.Flag("disable-features", "AudioServiceOutOfProcess"),
		chromedp.WindowSize(900, 700),
	}
}
