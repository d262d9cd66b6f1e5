//go:build long

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/lab/browser"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestAxeFindsNothing has every view of the page judged by axe-core: the copy that every Chromium has for Lighthouse in its
// developer tools, so nothing is fetched and nothing is vendored.
func TestAxeFindsNothing(t *testing.T) {
	axe := auditor{script: axeOfChromium(t), found: `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
	  violations.flatMap(({ id, impact, nodes }) => nodes.map(({ target, failureSummary }) => [id, impact, target, failureSummary].join(' '))))`}
	showsEveryView(t, axe,
		func(t *testing.T, p *page, _ map[string]string) {
			t.Helper()
			var found []string
			p.mustEval(t, `(() => {
			  const leave = document.querySelector('#leave, #elsewhere').cloneNode();
			  for (const attribute of [...leave.attributes]) leave.removeAttribute(attribute.name);
			  document.querySelector('main:not([hidden])').append(leave);
			  return axe.run(document, { runOnly: ['button-name'] }).then(({ violations }) => (leave.remove(), violations.map(({ id }) => id)));
			})()`, &found)
			if len(found) != 1 {
				t.Errorf("a button without a name is found by %q", found)
			}
		})
	t.Run("alone", func(t *testing.T) {
		c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
		tab, p := openTab(t, "Ada")
		a := &audit{participant: &participant{page: p}, tab: tab, cluster: c, by: axe}
		show(tab, t, "dark desk")
		a.opens(t, "dark desk", "alone", url.Values{"name": {"Ada"}})
		a.sees(t, "that it is alone", alone)
		a.judge(t, "dark desk, alone")
		checkForEverybody(t, c.URL()+"check/", axe, "light desk", "dark phone")
	})
}

// axeOfChromium is the source of axe-core: a template literal in the bundle of Lighthouse, which Chromium serves beside its
// debugging port. A browser reads the literal.
func axeOfChromium(t *testing.T) string {
	t.Helper()
	needChromium(t, 1)
	profile, err := os.MkdirTemp("", "holdfast-axe-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(profile) }()
	command := exec.CommandContext(t.Context(), browser.Whole(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
		"--user-data-dir="+profile, "--remote-debugging-port=0", "about:blank") //nolint:gosec // a listed tool
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	port := ""
	eventually(t, time.Minute, "the browser names its port", func() error {
		opened, err := os.ReadFile(filepath.Join(profile, "DevToolsActivePort")) //nolint:gosec // of the test
		port, _, _ = strings.Cut(string(opened), "\n")
		return err
	})
	address := fmt.Sprintf("http://127.0.0.1:%s/devtools/third_party/lighthouse/lighthouse-dt-bundle.js", port)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	bundle, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	literal, err := templateLiteral(bundle, "/*! axe v")
	if err != nil {
		t.Fatalf("%s (%d bytes, %s): %v", address, len(bundle), response.Status, err)
	}
	tab, _ := openTab(t, "nobody")
	source, err := chromedp.Run(tab, chromedp.Evaluate[string](literal))
	if err != nil {
		t.Fatal(err)
	}
	version, _, _ := strings.Cut(source, "\n")
	t.Log(version)
	return source
}

// templateLiteral returns the template literal of a script whose text begins so.
func templateLiteral(script []byte, beginning string) (string, error) {
	start := bytes.Index(script, []byte("`"+beginning))
	if start < 0 {
		return "", fmt.Errorf("no text begins with %q", beginning)
	}
	for i := start + 1; i < len(script); i++ {
		switch script[i] {
		case '\\':
			i++
		case '`':
			return string(script[start : i+1]), nil
		}
	}
	return "", fmt.Errorf("the text that begins with %q does not end", beginning)
}
