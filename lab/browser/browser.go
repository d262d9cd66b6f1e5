// Package browser drives a Chromium with one page in it, for tests and the lab's
// tools: a process of its own for each page, so that the browser does not throttle
// pages that are not in front.
//
// It promises that the browser ends with Close. It knows how a headless Chromium is
// started with fake devices, and nothing of calls.
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

	"github.com/holdfast-rtc/holdfast/backoff"
)

// ErrNoChromium is returned where no Chromium is installed.
var ErrNoChromium = errors.New("no chromium on this machine")

// Debian's command for the headless shell is a script that leaves the browser behind when it is killed.
const shellScript, shell = "/usr/bin/chromium-headless-shell", "/usr/lib/chromium/chromium-headless-shell"

// Path is where the Chromium of this machine is; empty where there is none. The headless shell goes first: the same engine
// without windows, which starts in a quarter of the CPU time.
func Path() string {
	path := found("chromium-headless-shell")
	if path == shellScript {
		path = cmp.Or(found(shell), path)
	}
	return cmp.Or(path, Whole())
}

// Whole is where the whole Chromium is, for what its headless shell lacks; empty where there is none.
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

// Page is one browser process with one page in it.
type Page struct {
	tab   context.Context //nolint:containedctx // chromedp's handle of a browser is a context
	close func()
}

// Open is OpenAt of the browser that is at Path.
func Open(ctx context.Context, address, script string, heard func(line string)) (*Page, error) {
	return OpenAt(ctx, Path(), address, script, heard)
}

// OpenAt starts the browser at path, runs the script before the page's own, and opens the address. heard gets the console's lines
// from another goroutine; nil = nobody. The browser lives until Close, even if ctx ends.
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
		// chromedp.Navigate waits for a load event that it can miss.
		if _, err := chromedp.Call(tab, cdppage.Navigate, cdppage.NavigateParams{URL: address}); err != nil {
			p.close()
			return nil, fmt.Errorf("open %s: %w", address, err)
		}
		p.loaded(ctx)
	}
	return p, nil
}

// Chromium gives up what it is loading when an interface of the machine comes or goes, as with each container.
const (
	networkChanged = "net::ERR_NETWORK_CHANGED"
	loads          = 3
	loadLimit      = 30 * time.Second
)

// loaded waits until the page's modules are there or have failed, or the limit has passed. The caller waits for what the page shows.
func (p *Page) loaded(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, loadLimit)
	defer cancel()
	for complete := false; !complete; {
		if err := p.Eval(ctx, `location.href !== 'about:blank' && document.readyState === 'complete'`, &complete); err != nil {
			complete = false // A page that is replaced ends its scripts.
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

// Run evaluates a script whose value is a promise of a string.
func (p *Page) Run(ctx context.Context, script string) (string, error) {
	within, cancel := context.WithCancel(p.tab)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	return chromedp.Run(within, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise)) //nolint:contextcheck // as above
}

// Eval runs an expression (a promise is awaited) and decodes its JSON value.
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

// Flags are what a headless Chromium needs as root, over loopback, with fake devices and no services of its own.
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
		// A process less, and less to copy: a fifth of what sound costs.
		chromedp.Flag("disable-features", "AudioServiceOutOfProcess"),
		chromedp.WindowSize(900, 700),
	}
}
