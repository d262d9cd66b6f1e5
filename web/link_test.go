package web_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/web"
)

// TestALinkJoinsNobodyWithoutAClick: a stranger's link with a token of his own must not put whoever opens
// it before his eyes. In dev it joins, for tests. The token does not stay in the address.
func TestALinkJoinsNobodyWithoutAClick(t *testing.T) {
	ctx := browser(t)
	for name, dev := range map[string]bool{"production": false, "dev": true} {
		t.Run(name, func(t *testing.T) {
			var joins atomic.Int32
			mux := http.NewServeMux()
			mux.Handle("/", http.FileServerFS(web.Static()))
			mux.HandleFunc("/api/v1/config", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(map[bool]string{true: `{"dev":true,"protocol":1}`, false: `{"dev":false,"protocol":1}`}[dev]))
			})
			mux.HandleFunc("/ws", func(w http.ResponseWriter, _ *http.Request) {
				joins.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			tab, cancel := context.WithTimeout(tab, time.Minute)
			defer cancel()
			if err := chromedp.Do(tab, chromedp.Navigate(server.URL+"/?room=lair&name=Ada&autojoin=1&token=old#token=secret")); err != nil {
				t.Fatal(err)
			}
			eval := func(script string) string {
				t.Helper()
				got, err := chromedp.Run(tab, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			if got := eval("location.search + location.hash"); got != "?room=lair&name=Ada&autojoin=1" {
				t.Errorf("the address is %s: the token stays in it", got)
			}
			waits := func() {
				t.Helper()
				eval(`(async () => {
				  while (!(document.querySelector('#preview')?.videoWidth > 0) || document.querySelector('#enter').disabled) await new Promise((r) => setTimeout(r, 20));
				  return '';
				})()`)
			}
			if !dev {
				waits()
				if n := joins.Load(); n != 0 {
					t.Fatalf("%d joins without a click", n)
				}
				// A reload finds the token again, and waits for a click again.
				if err := chromedp.Do(tab, chromedp.Reload()); err != nil {
					t.Fatal(err)
				}
				waits()
				if n := joins.Load(); n != 0 {
					t.Fatalf("%d joins without a click, after a reload", n)
				}
				eval(`(document.querySelector('#enter').click(), '')`)
			}
			for joins.Load() == 0 {
				select {
				case <-tab.Done():
					t.Fatal("nobody joins, not even with a click")
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
}

// TestTheLobbyOfATokenLink: what the token decides cannot be typed over, what it forbids is not asked for, and who waits for a
// server that is away may give up. The page is served under a path of its host, as behind a proxy, and asks for nothing above it.
func TestTheLobbyOfATokenLink(t *testing.T) {
	var joins atomic.Int32
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(web.Static()))
	mux.HandleFunc("/api/v1/config", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"dev":false,"protocol":1}`)) })
	mux.HandleFunc("/ws", func(w http.ResponseWriter, _ *http.Request) {
		joins.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/api/v1/rooms/lair/roster", func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer x.") {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = w.Write([]byte(`{"state":"current","people":[{"identity":"alan","name":"Alan"},{"identity":"joan"}]}`))
	})
	server := httptest.NewServer(http.StripPrefix("/call", mux))
	t.Cleanup(server.Close)
	tab, closeTab := chromedp.NewContext(browser(t))
	defer closeTab()
	tab, cancel := context.WithTimeout(tab, time.Minute)
	defer cancel()
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"name":"Grace","video":{"room":"lair","canPublish":false}}`))
	if err := chromedp.Do(tab, chromedp.Navigate(server.URL+"/call/?room=other&name=Ada#token=x."+claims+".y")); err != nil {
		t.Fatal(err)
	}
	sees := func(what, script string) {
		t.Helper()
		if _, err := chromedp.Run(tab, chromedp.Evaluate[bool](`(async () => { while (!(`+script+`)) await new Promise((r) => setTimeout(r, 20)); return true; })()`, chromedp.EvalAwaitPromise)); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	const of = `const of = (id) => document.querySelector('#' + id); `
	find := func(condition string) string { return `(() => { ` + of + `return ` + condition + `; })()` }
	sees("its room and name", find(`of('room').value === 'lair' && of('room').readOnly && of('name').value === 'Grace' && of('name').readOnly`))
	sees("what it forbids", find(`of('grant-note').textContent.includes('watch and listen') && of('preview').hidden && of('retry').hidden`))
	sees("who is there", find(`of('here').textContent.replaceAll(/[\u2068\u2069]/g, '') === 'Alan and joan are here.' && !of('here').hidden`))
	sees("no camera to turn on", find(`document.querySelector('.mirror [data-toggle=camera]').getAttribute('aria-disabled') === 'true'`))
	sees("a way to join", find(`!of('enter').disabled && of('cancel').hidden && (of('enter').click(), true)`))
	sees("that it may give up", find(`of('enter').disabled && !of('cancel').hidden`))
	for joins.Load() == 0 {
		select {
		case <-tab.Done():
			t.Fatal("nobody joins")
		case <-time.After(20 * time.Millisecond):
		}
	}
	sees("the way out", find(`(of('cancel').click(), !of('enter').disabled && of('cancel').hidden && of('problem').hidden)`))
	sees("no invitation without a place to lead to", `(await (await import('/call/page/tokens.js')).invitationTemplate()) === ''`)
}
