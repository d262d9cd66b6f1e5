package data

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/pion/logging"
	"github.com/pion/sctp"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// FuzzStamp reads messages that a client made up: what is passed on has the sender that the node knows, and is no longer than the message
// and the sender's names.
func FuzzStamp(f *testing.F) {
	f.Add(user("hello"))
	f.Add(append(user("x", appendBytes(nil, userDestinations, []byte("bob"))), appendBytes(nil, packetDestinations, []byte("bob"))...))
	f.Add([]byte{8, 1, 0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x1d, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, message []byte) {
		stamped, _, err := Stamp(message, Sender{Peer: "p", Identity: "mallory"})
		if err != nil {
			return
		}
		if got := read(t, stamped); got.identity != "mallory" || got.sid != "PA_p" {
			t.Errorf("stamped %+v", got)
		}
		again, _, err := Stamp(stamped, Sender{Peer: "p", Identity: "mallory"})
		if err != nil || !bytes.Equal(again, stamped) {
			t.Errorf("%q stamped again is %q (%v)", stamped, again, err)
		}
	})
}

func FuzzOpening(f *testing.F) {
	f.Add([]byte("\x03\x81\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00_lossy"))
	f.Fuzz(func(t *testing.T, message []byte) {
		if said, ok := readOpening(message); ok && (len(said.label) > len(message)-openBytes || said.limit > sctp.ReliabilityTypeTimed) {
			t.Errorf("read %+v", said)
		}
	})
}

// FuzzAssociation changes bytes of what a client sends. SCTP has no checksum that would catch it, and Pion's goroutines no wall against
// panics: one here would end the process.
func FuzzAssociation(f *testing.F) {
	f.Add([]byte{0, 0, 0, 40, 13, 7})
	f.Add([]byte{0, 1, 12, 255, 3, 20, 9, 4, 17, 0})
	f.Fuzz(func(t *testing.T, changes []byte) {
		near, far := net.Pipe()
		guard := panics.New()
		served := make(chan struct{})
		go func() {
			defer close(served)
			NewRoom(&Tally{}, func(Message) {}).Serve(far, Client{
				Sender: Sender{Peer: "p", Identity: "p"}, MaySend: func() bool { return true }, Log: slog.New(slog.DiscardHandler), Panics: guard,
			})
		}()
		association, err := sctp.ClientWithOptions(
			sctp.WithNetConn(&garbler{Conn: near, changes: changes}), sctp.WithEnableZeroChecksum(true), sctp.WithRTOMax(10),
			sctp.WithLoggerFactory(&logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled}),
		)
		if err == nil {
			for id := range uint16(3) {
				if stream, err := association.OpenStream(1+2*id, sctp.PayloadTypeWebRTCBinary); err == nil {
					_, _ = stream.WriteSCTP([]byte("\x03\x00\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00_reliable"), sctp.PayloadTypeWebRTCDCEP)
					_, _ = stream.WriteSCTP(bytes.Repeat(user("hello"), 200), sctp.PayloadTypeWebRTCBinary)
					_ = stream.Close()
				}
			}
			_ = association.Close()
		}
		_ = near.Close()
		<-served
		if guard.Count() != 0 {
			t.Error("the node's part panicked")
		}
	})
}

// garbler changes a byte of each packet after the handshake's two: of the changes, one says where and the next to what.
type garbler struct {
	net.Conn

	mu      sync.Mutex
	packets int
	changes []byte
}

func (g *garbler) Write(b []byte) (int, error) {
	g.mu.Lock()
	changed := bytes.Clone(b)
	if g.packets++; g.packets > 2 && len(g.changes) > 1 {
		changed[int(g.changes[0])%len(changed)] = g.changes[1]
		g.changes = g.changes[2:]
	}
	g.mu.Unlock()
	return g.Conn.Write(changed)
}
