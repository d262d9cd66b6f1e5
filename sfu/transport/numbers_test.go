package transport

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// sealing is a connection whose packets go nowhere, with the nonces that it used.
type sealing struct {
	conn *Conn
	used map[string]bool // of both nodes
	next map[uint32]uint16
}

// nowhere is a Batch.
type nowhere struct{ space [2000]byte }

func (n *nowhere) Space(bytes int) []byte                      { return n.space[:bytes] }
func (n *nowhere) Put(int, egress.Address, egress.Frame) error { return nil }

func newSealing(t *rapid.T, keys Keys, n Numbers, used map[string]bool) *sealing {
	c := &Conn{cfg: Config{Log: slog.New(slog.DiscardHandler)}, transport: &Transport{}, opened: time.Now()}
	if err := openBoth(c, keys.srtp(), n); err != nil {
		t.Fatal(err)
	}
	c.selected.Store(&egress.Address{})
	s := &sealing{conn: c, used: used, next: map[uint32]uint16{}}
	for ssrc, highest := range n.Sealed {
		s.next[ssrc] = uint16(highest) + 1
	}
	return s
}

// media seals packets of an SSRC until one is refused, and fails at a nonce that was used.
func (s *sealing) media(t *rapid.T, ssrc uint32, packets int) {
	w := s.conn.Writer(&nowhere{}, false)
	for range packets {
		header := rtp.Header{Version: 2, SSRC: ssrc, SequenceNumber: s.next[ssrc]}
		s.next[ssrc]++
		n, err := w.WriteRTP(&header, []byte{1})
		if err != nil || n == 0 {
			return
		}
		s.use(t, fmt.Sprintf("RTP %x", s.conn.out.media.(*gcm).nonce))
	}
}

func (s *sealing) control(t *rapid.T, ssrc uint32) {
	if s.conn.Writer(&nowhere{}, false).WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{SenderSSRC: ssrc}}) == nil {
		index, _ := s.conn.out.context.Index(ssrc)
		s.use(t, fmt.Sprintf("RTCP %x %d", ssrc, index))
	}
}

func (s *sealing) use(t *rapid.T, nonce string) {
	if s.used[nonce] {
		t.Fatalf("nonce %s is used twice", nonce)
	}
	s.used[nonce] = true
}

// TestNoNonceIsUsedTwice: whatever the owner sends before, between and after its reports, whichever of them arrive and are
// acknowledged, and even if it goes on after the standby has taken over: no packet is sealed with a nonce of another.
func TestNoNonceIsUsedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys, _ := NewKeys()
		used := map[string]bool{}
		owner := newSealing(t, keys, Numbers{}, used)
		var told []Numbers // and not yet acknowledged
		var known *Numbers // by the standby
		var standby *sealing
		ssrcs := rapid.Uint32Range(1, 3)
		send := func(s *sealing) {
			ssrc := ssrcs.Draw(t, "ssrc")
			if _, known := s.next[ssrc]; s == standby && !known {
				ssrc += 100 // A stream that it does not know gets an SSRC of its own.
			}
			s.media(t, ssrc, rapid.SampledFrom([]int{1, 3, 100, 7000, 20000}).Draw(t, "packets"))
			s.control(t, ssrcs.Draw(t, "ssrc of RTCP"))
		}
		for range rapid.IntRange(3, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				send(owner)
			case 1: // a report goes out, and perhaps arrives
				n := owner.conn.Numbers()
				owner.conn.Bound(n, false)
				if standby == nil && rapid.Bool().Draw(t, "arrives") {
					known, told = &n, append(told, n)
				}
			case 2:
				if len(told) > 0 {
					owner.conn.Bound(told[0], true)
					told = told[1:]
				}
			case 3, 4:
				if standby != nil {
					send(standby)
				}
			case 5:
				if standby == nil && known != nil {
					standby = newSealing(t, keys, known.Ahead(), used)
				}
			}
		}
		if standby == nil {
			final, ok := owner.conn.HandOver()
			if !ok {
				t.Fatal("the connection had ended")
			}
			standby = newSealing(t, keys, final, used)
		}
		for range 3 {
			send(owner)
			send(standby)
		}
	})
}

// TestTheStandbyOpensAndIsOpened: a client's context opens what the owner sealed and then what the standby does, across
// roll-overs; and the standby opens what the client goes on to send, but not what the owner may have opened.
func TestTheStandbyOpensAndIsOpened(t *testing.T) {
	ours, theirs := NewKeys()
	config := theirs.srtp()
	client, err := srtp.CreateContext(config.Keys.RemoteMasterKey, config.Keys.RemoteMasterSalt, config.Profile)
	if err != nil {
		t.Fatal(err)
	}
	up, err := newSealer(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	send := func(c *Conn, number uint16) {
		t.Helper()
		batch := &nowhere{}
		n, err := c.Writer(batch, false).WriteRTP(&rtp.Header{Version: 2, SSRC: 7, SequenceNumber: number}, []byte{1, 2, 3})
		if err != nil || n == 0 {
			t.Fatalf("packet %d: %d bytes, %v", number, n, err)
		}
		if _, err := client.DecryptRTP(nil, bytes.Clone(batch.space[:n]), nil); err != nil {
			t.Fatalf("packet %d is not opened: %v", number, err)
		}
	}
	uplink := func(c *Conn, number uint16) int {
		t.Helper()
		space := make([]byte, 100)
		n, err := up.seal(space, &rtp.Header{Version: 2, SSRC: 9, SequenceNumber: number}, []byte{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		got := c.cfg.Handler.(*recorder)
		c.media(space[:n], egress.Address{}, time.Now())
		got.mu.Lock()
		defer got.mu.Unlock()
		return got.streams[9]
	}
	open := func(n Numbers) *Conn {
		t.Helper()
		c := &Conn{cfg: Config{Log: slog.New(slog.DiscardHandler), Handler: &recorder{streams: map[uint32]int{}}}, transport: &Transport{}, opened: time.Now()}
		if err := openBoth(c, ours.srtp(), n); err != nil {
			t.Fatal(err)
		}
		c.selected.Store(&egress.Address{})
		return c
	}
	owner := open(Numbers{})
	for i := range 3 * 1 << 16 / 100 {
		send(owner, uint16(i*100))
		uplink(owner, uint16(60000+i*100))
	}
	n := owner.Numbers()
	standby := open(n.Ahead())
	first := uint16(n.Sealed[7]) + jumpPackets + 1
	send(standby, first)
	send(standby, first+1)
	if got := uplink(standby, uint16(n.Opened[9])); got != 0 {
		t.Error("a packet that the owner had opened is opened again")
	}
	if got := uplink(standby, uint16(n.Opened[9])+300); got != 1 {
		t.Errorf("%d packets of the client are opened, want 1", got)
	}
	if _, err := standby.Writer(&nowhere{}, false).WriteRTP(&rtp.Header{Version: 2, SSRC: 7, SequenceNumber: first - 2}, nil); err == nil {
		t.Error("a number that the owner may have used is sealed")
	}
}

func TestSecretsHide(t *testing.T) {
	keys, _ := NewKeys()
	s := Secrets{Keys: keys, Ours: Credentials{Password: "pass-of-ours"}, Theirs: Credentials{Password: "pass-of-theirs"}}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secrets", s)
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), log.String()} {
		if bytes.Contains([]byte(text), []byte("pass-of")) {
			t.Errorf("%q shows a password", text)
		}
	}
}
