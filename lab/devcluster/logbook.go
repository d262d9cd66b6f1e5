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
	logKeepBytes = 1 << 20  // of each node's log in memory; the oldest half is dropped when it is full
	logFileBytes = 64 << 20 // of each node's log on disk; later lines are dropped, and the last line says so
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

	mu      sync.Mutex // guards the fields below
	partial []byte
	kept    bytes.Buffer
	file    *os.File
	written int
}

func openLogbook(dir, name string, show func(line []byte)) (*logbook, error) {
	file, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	return &logbook{show: show, file: file}, nil
}

// Write takes a piece of the log, not necessarily whole lines.
func (l *logbook) Write(piece []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(piece)
	l.partial = append(l.partial, piece...)
	for {
		end := bytes.IndexByte(l.partial, '\n')
		if end < 0 {
			break
		}
		l.show(l.partial[:end])
		l.partial = l.partial[end+1:]
	}
	if len(l.partial) > logKeepBytes { // a line without an end
		l.partial = nil
	}
	return len(piece), nil
}

func (l *logbook) keep(piece []byte) {
	if l.kept.Len()+len(piece) > logKeepBytes {
		l.kept.Next(min(l.kept.Len(), logKeepBytes/2+len(piece)))
	}
	l.kept.Write(piece)
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

// text returns what is kept in memory.
func (l *logbook) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}

func (l *logbook) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}
