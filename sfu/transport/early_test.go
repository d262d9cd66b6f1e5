package transport

import (
	"log/slog"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// TestWhatComesBeforeTheKeysIsKept: a client has its keys before the node, and what it sends first is a keyframe.
func TestWhatComesBeforeTheKeysIsKept(t *testing.T) {
	transport, _ := newTransport(t)
	got := &recorder{streams: map[uint32]int{}}
	c, err := transport.Open(Config{Handler: got, Owner: "alice", Ufrag: "u", Password: theirPassword, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	keys := testKeys(t, srtp.ProtectionProfileAeadAes128Gcm)
	keys.Keys.RemoteMasterKey, keys.Keys.RemoteMasterSalt = keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt
	theirs, err := srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, keys.Profile)
	if err != nil {
		t.Fatal(err)
	}
	reused := make([]byte, 0, 100) // as a reader's
	send := func(sequence int) {
		plain, err := (&rtp.Packet{Header: rtp.Header{Version: 2, SSRC: 7, SequenceNumber: uint16(sequence)}, Payload: []byte("frame")}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if reused, err = theirs.EncryptRTP(reused[:0], plain, nil); err != nil {
			t.Fatal(err)
		}
		c.media(reused, egress.Address{}, time.Now())
	}
	send(0) // Nobody shakes hands yet.
	c.in.wait(true)
	for sequence := range earlyPackets + 3 {
		send(1 + sequence)
	}
	if err := c.open(keys); err != nil {
		t.Fatal(err)
	}
	c.in.wait(false)
	send(100)
	if n := got.streams[7]; n != earlyPackets+1 {
		t.Errorf("%d packets were taken in, want %d", n, earlyPackets+1)
	}
}
