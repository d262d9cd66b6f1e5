package transport

import (
	"bytes"
	"testing"
	"time"

	"github.com/pion/rtp"
)

// TestARepeatedPacketIsTheSameDatagram, with every profile: another under its number would use a nonce twice.
func TestARepeatedPacketIsTheSameDatagram(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	writer := c.conn.Writer(&direct{socket: w}, false)
	const kept = 4
	writer.Keep(9, kept)
	var sent [][]byte
	for number := range uint16(kept + 2) {
		if number%2 == 0 { // another stream is not kept
			write(t, writer, &rtp.Header{Version: 2, SSRC: 10, SequenceNumber: number})
			c.datagram()
		}
		write(t, writer, &rtp.Header{Version: 2, SSRC: 9, SequenceNumber: number - 2})
		sent = append(sent, c.datagram())
	}
	for i, first := range sent {
		n, err := writer.Repeat(uint16(i) - 2)
		if err != nil {
			t.Fatal(err)
		}
		if i < len(sent)-kept {
			if n != 0 {
				t.Errorf("packet %d of %d is still there", i, len(sent))
			}
			continue
		}
		if again := c.datagram(); n != len(first) || !bytes.Equal(again, first) {
			t.Errorf("packet %d came as\n%x\nand comes again as\n%x", i, first, again)
		}
	}
	if n, err := c.conn.Writer(&direct{socket: w}, false).Repeat(1); n != 0 || err != nil {
		t.Errorf("a writer that keeps nothing sent %d bytes (%v)", n, err)
	}
}

func write(t *testing.T, w *Writer, header *rtp.Header) {
	t.Helper()
	if n, err := w.WriteRTP(header, []byte{byte(header.SequenceNumber), 1, 2}); n == 0 || err != nil {
		t.Fatalf("%d bytes were written: %v", n, err)
	}
}

// datagram is the next of media that comes for the client.
func (c *client) datagram() []byte {
	c.t.Helper()
	select {
	case b := <-c.media:
		return b
	case <-time.After(patience):
		c.t.Fatal("no media came")
		return nil
	}
}
