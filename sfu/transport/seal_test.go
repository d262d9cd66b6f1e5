package transport

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
)

// TestSealedPacketsOpen: what any profile sealed Pion's SRTP opens, across roll-overs and out of order, with and without padding.
func TestSealedPacketsOpen(t *testing.T) {
	for _, profile := range []srtp.ProtectionProfile{
		srtp.ProtectionProfileAeadAes128Gcm, srtp.ProtectionProfileAeadAes256Gcm, srtp.ProtectionProfileAes128CmHmacSha1_80,
	} {
		t.Run(profile.String(), func(t *testing.T) {
			keys := testKeys(t, profile)
			context, err := srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, profile)
			if err != nil {
				t.Fatal(err)
			}
			s, err := newSealer(keys, context)
			if err != nil {
				t.Fatal(err)
			}
			opener, err := srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, profile)
			if err != nil {
				t.Fatal(err)
			}
			// Two streams, of which one is resent a little of; the numbers roll over twice.
			for step := range 3 * 1 << 16 / 50 {
				for ssrc := range uint32(2) {
					number := uint16(65000 + step*50)
					checkSealed(t, s, opener, ssrc, number)
					if ssrc == 1 {
						checkSealed(t, s, opener, ssrc, number-7)
					}
				}
			}
		})
	}
}

func checkSealed(t *testing.T, s sealer, opener *srtp.Context, ssrc uint32, number uint16) {
	t.Helper()
	header := &rtp.Header{Version: 2, SSRC: ssrc, SequenceNumber: number, PayloadType: 96, Marker: number%2 == 0}
	if number%3 == 0 {
		if err := header.SetExtension(3, []byte{1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	header.PaddingSize = byte(number % 5)
	header.Padding = header.PaddingSize > 0
	payload := bytes.Repeat([]byte{byte(number)}, 100+int(number%7))
	space := make([]byte, header.MarshalSize()+len(payload)+int(header.PaddingSize)+sealOverhead)
	n, err := s.seal(space, header, payload)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := opener.DecryptRTP(nil, space[:n], nil)
	if err != nil {
		t.Fatalf("number %d of stream %d: %v", number, ssrc, err)
	}
	var got rtp.Packet
	if err := got.Unmarshal(opened); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Payload, payload) || got.SequenceNumber != number || got.Marker != header.Marker || got.PaddingSize != header.PaddingSize ||
		!bytes.Equal(got.GetExtension(3), header.GetExtension(3)) {
		t.Fatalf("opened %+v, sealed %+v", got.Header, header)
	}
}

// TestTooLittleSpaceIsRefused and nothing is written behind it.
func TestTooLittleSpaceIsRefused(t *testing.T) {
	for _, profile := range []srtp.ProtectionProfile{srtp.ProtectionProfileAeadAes128Gcm, srtp.ProtectionProfileAes128CmHmacSha1_80} {
		keys := testKeys(t, profile)
		context, err := srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, profile)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newSealer(keys, context)
		if err != nil {
			t.Fatal(err)
		}
		for size := range 12 + 100 + 3 + sealOverhead {
			header := &rtp.Header{Version: 2, Padding: true, PaddingSize: 3}
			if n, err := s.seal(make([]byte, size), header, make([]byte, 100)); err == nil {
				t.Fatalf("%v: %d bytes were sealed in a space of %d", profile, n, size)
			}
		}
	}
}

func testKeys(t testing.TB, profile srtp.ProtectionProfile) srtp.Config {
	t.Helper()
	keyBytes, err := profile.KeyLen()
	if err != nil {
		t.Fatal(err)
	}
	saltBytes, err := profile.SaltLen()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	keys := srtp.Config{Profile: profile}
	keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt = make([]byte, keyBytes), make([]byte, saltBytes)
	_, _ = random.Read(keys.Keys.LocalMasterKey) // It never fails.
	_, _ = random.Read(keys.Keys.LocalMasterSalt)
	return keys
}

// BenchmarkSeal is what encrypting a packet of 1,100 bytes costs.
func BenchmarkSeal(b *testing.B) {
	keys := testKeys(b, srtp.ProtectionProfileAeadAes128Gcm)
	g, err := newGCM(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt)
	if err != nil {
		b.Fatal(err)
	}
	header, payload, space := &rtp.Header{Version: 2, SSRC: 1}, make([]byte, 1088), make([]byte, 2000)
	b.ReportAllocs()
	for b.Loop() {
		header.SequenceNumber++
		if _, err := g.seal(space, header, payload); err != nil {
			b.Fatal(err)
		}
	}
}
