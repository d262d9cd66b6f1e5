package devcluster

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

const (
	logTailBytes = 1 << 20  // of a log that are read again
	logFileBytes = 64 << 20 // of each node's log; later lines are dropped, and the last line says so
)

// terminal serializes lines of many children onto one writer. It never blocks a child: lines that do not fit are
// dropped.
type terminal struct {
	lines chan []byte // bounded; when full, a line is dropped
	done  chan struct{}
}

const terminalQueue = 4096

func newTerminal(w io.Writer) *terminal {
	t := &terminal{lines: make(chan []byte, terminalQueue), done: make(chan struct{})}
	go func() {
		defer close(t.done)
		for line := range t.lines {
			_, _ = w.Write(line)
		}
	}()
	return t
}

func (t *terminal) print(line []byte) {
	select {
	case t.lines <- line:
	default:
	}
}

func (t *terminal) printf(format string, args ...any) { t.print(fmt.Appendf(nil, format, args...)) }

// close prints what is queued and returns. No print may follow.
func (t *terminal) close() {
	close(t.lines)
	<-t.done
}

// logbook is one node's log over all its runs; a child's standard error is copied to it.
type logbook struct {
	show func(line []byte) // decides what the terminal sees of a whole line
	path string

	mu      sync.Mutex // guards the fields below
	partial []byte
	file    *os.File // nil when it is full or closed
	written int
}

func openLogbook(dir, name string, show func(line []byte)) (*logbook, error) {
	path := filepath.Join(dir, name+".log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	return &logbook{show: show, path: path, file: file}, nil
}

// Write takes a piece of the log, not necessarily whole lines.
func (l *logbook) Write(piece []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(piece)
	l.partial = append(l.partial, piece...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte("\n"))
		if !whole {
			break
		}
		l.show(line)
		l.partial = rest
	}
	if len(l.partial) > logTailBytes { // a line without an end
		l.partial = nil
	}
	return len(piece), nil
}

func (l *logbook) keep(piece []byte) {
	if l.file == nil {
		return
	}
	if l.written += len(piece); l.written > logFileBytes {
		_, _ = l.file.WriteString("\nthis file is full: later lines are dropped\n")
		l.file.Close()
		l.file = nil
		return
	}
	_, _ = l.file.Write(piece)
}

func (l *logbook) text() string { return logTail(l.path) }

// logTail is the end of a log; empty if there is none.
func logTail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if _, err := file.Seek(-logTailBytes, io.SeekEnd); err != nil { // it is shorter
		_, _ = file.Seek(0, io.SeekStart)
	}
	text, _ := io.ReadAll(file)
	return string(text)
}

func (l *logbook) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}
