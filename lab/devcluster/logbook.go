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
	logTailBytes = 1 << 20  // read back
	logFileBytes = 64 << 20 // of each node; later lines are dropped
)

// terminal writes the lines of many children without blocking one.
type terminal struct {
	lines chan []byte // when full, a line is dropped
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

// close prints the queue. No print may follow.
func (t *terminal) close() {
	close(t.lines)
	<-t.done
}

// logbook is one node's log over all its runs.
type logbook struct {
	show func(line []byte) // gets whole lines
	path string

	mu      sync.Mutex // guards the fields below
	partial []byte
	file    *os.File // nil when full or closed
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

// Write need not get whole lines.
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
	if len(l.partial) > logTailBytes { // endless line
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

func logTail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if _, err := file.Seek(-logTailBytes, io.SeekEnd); err != nil { // shorter file
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
