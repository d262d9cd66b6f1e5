package signaling

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
)

const (
	// Longer messages are read in parts.
	slimRead  = 512
	slimWrite = 1 << 10
)

// slimWriter gives hijacked connections 1.5 KiB of buffers instead of 8, for the socket's life. It keeps back an upgrade's refusal, which is
// plain text, and remembers the status; 0: there was none.
type slimWriter struct {
	http.ResponseWriter

	refused int
}

func (w *slimWriter) WriteHeader(status int) {
	if status == http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.refused = status
}

func (w *slimWriter) Write(text []byte) (int, error) { return len(text), nil }

func (w *slimWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early := make([]byte, buffers.Reader.Buffered())
	if _, err := io.ReadFull(buffers.Reader, early); err != nil {
		return nil, nil, err
	}
	reader := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), conn), max(slimRead, len(early)))
	if _, err := reader.Peek(len(early)); err != nil { // so that they count as buffered
		return nil, nil, err
	}
	return conn, bufio.NewReadWriter(reader, bufio.NewWriterSize(conn, slimWrite)), nil
}
