package signaling

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
)

const (
	// slimRead holds most of what a quiet client says; more is read past it.
	slimRead = 512
	// slimWrite holds a message of the usual size.
	slimWrite = 1 << 10
)

// slimWriter hands out a hijacked connection with buffers of 1.5 KiB instead of net/http's 8: a socket keeps them for
// life.
type slimWriter struct{ http.ResponseWriter }

// Hijack is part of http.Hijacker.
func (w slimWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early := make([]byte, buffers.Reader.Buffered()) // what came right behind the request
	if _, err := io.ReadFull(buffers.Reader, early); err != nil {
		return nil, nil, err // never: they are there
	}
	reader := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), conn), max(slimRead, len(early)))
	if _, err := reader.Peek(len(early)); err != nil { // so that they count as buffered
		return nil, nil, err
	}
	return conn, bufio.NewReadWriter(reader, bufio.NewWriterSize(conn, slimWrite)), nil
}
