package testkit

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

// Log collects log lines. It may be read while others write.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// String returns the text that was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Wait returns when the text has been logged.
func (l *Log) Wait(t testing.TB, text string) {
	t.Helper()
	Eventually(t, "log line "+text, func() bool { return strings.Contains(l.String(), text) })
}
