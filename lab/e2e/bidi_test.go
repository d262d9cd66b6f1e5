//go:build linux

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/tool"
)

// bidi drives one Firefox over WebDriver BiDi: JSON over a WebSocket.
type bidi struct {
	conn *websocket.Conn

	mu      sync.Mutex // guards the fields below
	last    int
	waiting map[int]chan bidiMessage // by the command's id
	failed  error                    // the connection has ended
}

type bidiMessage struct {
	ID      int             `json:"id"`
	Type    string          `json:"type"` // success, error or event
	Result  json.RawMessage `json:"result"`
	Error   string          `json:"error"`
	Message string          `json:"message"`
	Method  string          `json:"method"` // of an event
	Params  json.RawMessage `json:"params"`
}

const (
	// firefoxStart is how long a browser may take to start on a loaded machine.
	firefoxStart     = time.Minute
	bidiMessageBytes = 16 << 20
)

var errBidi = errors.New("WebDriver BiDi")

// dialBidi opens the connection from inside the namespace, where the port is.
func dialBidi(ctx context.Context, inside *netns, url string) (*bidi, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: inside.dial, DisableKeepAlives: true}}
	conn, response, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", url, err)
	}
	if response.Body != nil {
		response.Body.Close()
	}
	conn.SetReadLimit(bidiMessageBytes)
	return &bidi{conn: conn, waiting: map[int]chan bidiMessage{}}, nil
}

// listen reads until the connection ends, and hands events to onEvent.
func (b *bidi) listen(ctx context.Context, onEvent func(method string, params json.RawMessage)) {
	for {
		_, text, err := b.conn.Read(ctx)
		if err != nil {
			b.end(fmt.Errorf("%w: %w", errBidi, err))
			return
		}
		var message bidiMessage
		if err := json.Unmarshal(text, &message); err != nil {
			b.end(fmt.Errorf("%w: %w", errBidi, err))
			return
		}
		if message.Type == "event" {
			onEvent(message.Method, message.Params)
			continue
		}
		b.mu.Lock()
		waiting := b.waiting[message.ID]
		delete(b.waiting, message.ID)
		b.mu.Unlock()
		if waiting != nil {
			waiting <- message // It has room for the one answer.
		}
	}
}

func (b *bidi) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = err
	for id, waiting := range b.waiting {
		delete(b.waiting, id)
		close(waiting)
	}
}

func (b *bidi) call(ctx context.Context, method string, params, into any) error {
	answer := make(chan bidiMessage, 1)
	b.mu.Lock()
	if b.failed != nil {
		defer b.mu.Unlock()
		return b.failed
	}
	b.last++
	id := b.last
	b.waiting[id] = answer
	b.mu.Unlock()
	text, err := json.Marshal(map[string]any{"id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	if err := b.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return fmt.Errorf("%w: send %s: %w", errBidi, method, err)
	}
	select {
	case message, ok := <-answer:
		switch {
		case !ok:
			return fmt.Errorf("%w: the connection ended during %s", errBidi, method)
		case message.Type != "success":
			return fmt.Errorf("%w: %s: %s: %s", errBidi, method, message.Error, message.Message)
		case into == nil:
			return nil
		}
		return json.Unmarshal(message.Result, into)
	case <-ctx.Done():
		return fmt.Errorf("%w: %s: %w", errBidi, method, ctx.Err())
	}
}

// evaluate runs a script whose value is a promise of a string.
func (b *bidi) evaluate(ctx context.Context, tab, script string) (string, error) {
	var done struct {
		Type   string `json:"type"`
		Result struct {
			Value string `json:"value"`
		} `json:"result"`
		ExceptionDetails struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	err := b.call(ctx, "script.evaluate", map[string]any{
		"expression": script, "target": map[string]any{"context": tab}, "awaitPromise": true,
	}, &done)
	if err == nil && done.Type != "success" {
		err = fmt.Errorf("%w: the script threw %s", errBidi, done.ExceptionDetails.Text)
	}
	return done.Result.Value, err
}

// startFirefox runs a headless Firefox in the namespace and returns the address
// at which it takes commands. It and its profile end with the test, and with the
// namespace's thread if the test cannot end it.
func startFirefox(t *testing.T, inside *netns, preferences []string) string {
	t.Helper()
	profile := t.TempDir()
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(firefoxPreferences(preferences)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), tool.Find(t, "firefox-esr"),
		"--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+profile, "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inside.do(cmd.Start); err != nil {
		t.Fatalf("start Firefox: %v", err)
	}
	ready, read := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(read)
		awaitAddress(said, ready)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // The group: its content processes too.
		<-read
		_ = cmd.Wait()
	})
	select {
	case address := <-ready:
		return address
	case <-read:
		t.Fatal("Firefox ended, or never said where it listens")
	case <-time.After(firefoxStart):
		t.Fatalf("Firefox did not say within %v where it listens", firefoxStart)
	}
	return ""
}

func awaitAddress(said io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
			ready <- strings.TrimSpace(address) + "/session"
			break
		}
	}
	_, _ = io.Copy(io.Discard, said)
}

// firefoxPreferences give a headless Firefox fake devices, without questions or services of its own.
func firefoxPreferences(more []string) string {
	var text strings.Builder
	for _, preference := range append([]string{
		`"media.navigator.streams.fake", true`,
		`"media.navigator.permission.disabled", true`,
		`"media.autoplay.default", 0`,
		`"media.gmp-manager.updateEnabled", false`,
		`"network.manage-offline-status", false`,
		`"network.captive-portal-service.enabled", false`,
		`"network.connectivity-service.enabled", false`,
		`"network.dns.disablePrefetch", true`,
		`"app.update.enabled", false`,
		`"browser.safebrowsing.downloads.remote.enabled", false`,
		`"browser.safebrowsing.malware.enabled", false`,
		`"browser.safebrowsing.phishing.enabled", false`,
		`"browser.shell.checkDefaultBrowser", false`,
		`"browser.startup.page", 0`,
		`"browser.aboutwelcome.enabled", false`,
		`"browser.newtabpage.enabled", false`,
		`"browser.tabs.unloadOnLowMemory", false`,
		`"datareporting.policy.dataSubmissionEnabled", false`,
		`"datareporting.healthreport.uploadEnabled", false`,
		`"extensions.update.enabled", false`,
		`"services.settings.server", "data:,"`,
		`"toolkit.telemetry.server", "data:,"`,
	}, more...) {
		fmt.Fprintf(&text, "user_pref(%s);\n", preference)
	}
	return text.String()
}
