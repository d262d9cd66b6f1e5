//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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

// needFirefox fails where the tests must be whole and says what is not tested where they need not be.
func needFirefox(t *testing.T, browsers int) {
	t.Helper()
	tool.Find(t, "firefox-esr")
	needChromium(t, browsers)
}

// ownAddress is one of this machine that is not loopback, on which Firefox speaks to nobody.
func ownAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	const text = "this machine has no address but loopback: a call between Firefox and Chromium is NOT tested"
	if os.Getenv("CI") == "true" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

// openFirefox starts Firefox on an address; it ends with the test. It trusts the authorities of these certificates.
func openFirefox(t *testing.T, name, address string, certFiles ...string) *page {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), firefoxStart)
	defer cancel()
	at := startFirefox(t, certFiles)
	conn, response, err := websocket.Dial(ctx, at, nil)
	if err != nil {
		t.Fatalf("dial %s: %v", at, err)
	}
	if response.Body != nil {
		response.Body.Close()
	}
	conn.SetReadLimit(bidiMessageBytes)
	b, p := &bidi{conn: conn, waiting: map[int]chan bidiMessage{}}, &page{name: name}
	listening, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.listen(listening, p.onEvent)
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("console of %s:\n%s", name, p.consoleText())
		}
		stop()
		<-ended
		_ = b.conn.CloseNow()
	})
	var tree struct {
		Contexts []struct {
			Context string `json:"context"`
		} `json:"contexts"`
	}
	do := func(method string, params map[string]any, into any) {
		if err := b.call(ctx, method, params, into); err != nil {
			t.Fatalf("open %s in the Firefox of %s: %v", address, name, err)
		}
	}
	do("session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	do("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}, nil)
	do("script.addPreloadScript", map[string]any{"functionDeclaration": "() => {" + watchConnections + "}"}, nil)
	do("browsingContext.getTree", map[string]any{}, &tree)
	if len(tree.Contexts) == 0 {
		t.Fatal("Firefox has no tab")
	}
	tab := tree.Contexts[0].Context
	do("browsingContext.navigate", map[string]any{"context": tab, "url": address, "wait": "none"}, nil)
	p.run = func(ctx context.Context, script string) (string, error) { return b.evaluate(ctx, tab, script) }
	return p
}

func (p *page) onEvent(_ string, params json.RawMessage) {
	var entry struct {
		Level string `json:"level"`
		Text  string `json:"text"`
	}
	if err := json.Unmarshal(params, &entry); err == nil {
		p.note(entry.Level + ": " + entry.Text)
	}
}

// startFirefox runs a headless Firefox and returns the address at which it takes commands. It and its profile end with
// the test.
func startFirefox(t *testing.T, certFiles []string) string {
	t.Helper()
	profile := t.TempDir()
	if err := os.WriteFile(filepath.Join(profile, "user.js"), []byte(firefoxPreferences()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range certFiles {
		firefoxTrusts(t, profile, file)
	}
	cmd := exec.CommandContext(context.Background(), tool.Find(t, "firefox-esr"),
		"--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+profile, "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatalf("start Firefox: %v", err)
	}
	// Linux ties the parent-death signal to the thread that forked, which ends with whoever locked it last: this goroutine keeps it.
	started, gone, read := make(chan error, 1), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			<-read // Wait closes what is read.
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start Firefox: %v", err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(read)
		awaitAddress(said, ready)
	}()
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // The group: its content processes too.
		<-gone
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

// firefoxTrusts has a profile trust the last certificate of a file, which a file of a chain ends with.
func firefoxTrusts(t *testing.T, profile, certFile string) {
	t.Helper()
	text, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	var authority *pem.Block
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		authority = block
	}
	cmd := exec.Command(tool.Find(t, "certutil"), "-A", "-d", "sql:"+profile, "-n", certFile, "-t", "C,,") //nolint:gosec // a listed tool
	cmd.Stdin = bytes.NewReader(authority.Bytes)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", cmd.Args, err, said)
	}
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
func firefoxPreferences() string {
	var text strings.Builder
	for _, preference := range []string{
		// Two connections of one page reach each other by addresses: nobody answers multicast DNS here.
		`"media.peerconnection.ice.obfuscate_host_addresses", false`,
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
	} {
		fmt.Fprintf(&text, "user_pref(%s);\n", preference)
	}
	return text.String()
}
