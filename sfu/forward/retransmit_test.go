package forward

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A viewer that comes shortly after a keyframe gets that one, because the
// publisher would ignore a request so soon.
func TestFreshKeyframeIsReplayed(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		bob := st.slot("bob", "1", KindVideo)
		alice := st.camera("alice", "", 180)
		alice.frame(true, 2)
		alice.frame(false, 1)
		before := alice.asked()
		bob.slot.Ready()
		synctest.Wait()
		if got := bob.take(); len(got) != 3 || alice.asked() != before {
			t.Fatalf("%d packets, %d requests", len(got), alice.asked()-before)
		}
		alice.frame(false, 1)
		if got := bob.take(); len(got) != 1 {
			t.Fatal(len(got))
		}
	})
}

func TestRetransmission(t *testing.T) {
	for _, rtx := range []bool{true, false} {
		t.Run(fmt.Sprintf("rtx=%v", rtx), func(t *testing.T) {
			onStage(t, Config{}, func(st *stage) {
				bob, dave := st.slot("bob", "1", KindVideo), st.slot("dave", "1", KindVideo)
				if !rtx {
					bob.slot.cfg.RTXSSRC, bob.slot.cfg.Repeat = 0, bob.repeat
				}
				bob.slot.Ready()
				alice := st.camera("alice", "", 180)
				alice.frame(true, 3)
				st.pass(time.Second)
				alice.frame(true, 1)
				dave.slot.Ready() // begins later: its picture ids differ from bob's
				for range 15 {
					alice.frame(false, 2) // reuses buffers, if anybody gave one back too early
				}
				sent := bob.take()
				if id := parseVP8(dave.take()[0].Payload).PictureID; id == parseVP8(sent[3].Payload).PictureID {
					t.Fatal("the two streams have the same picture ids and prove nothing")
				}
				asked := sent[4:24]
				var numbers []uint16
				for _, p := range asked {
					numbers = append(numbers, p.SequenceNumber)
				}
				bob.slot.NACK(append(numbers, sent[0].SequenceNumber-9))
				synctest.Wait()
				again := bob.take()
				if len(again) != len(asked) {
					t.Fatalf("%d packets, want %d", len(again), len(asked))
				}
				for i, p := range again {
					if !rtx {
						checkSame(t, &p, &asked[i])
						continue
					}
					number, payload := binary.BigEndian.Uint16(p.Payload), p.Payload[2:]
					if p.SequenceNumber != again[0].SequenceNumber+uint16(i) {
						t.Fatal("RTX has numbers of its own, without gaps")
					}
					if number != numbers[i] || p.SSRC != 4712 || p.PayloadType != 97 || p.Timestamp != asked[i].Timestamp ||
						p.Marker != asked[i].Marker || !bytes.Equal(payload, asked[i].Payload) {
						t.Fatalf("packet %d differs", i)
					}
				}
				if s := st.room.Stats(); s.RetransmitMisses != 1 || s.Retransmitted != uint64(len(asked)) {
					t.Fatal(s)
				}
				st.pass(2 * cacheAge)
				bob.forget()
				bob.slot.NACK(numbers)
				synctest.Wait()
				if got := bob.take(); len(got) != 0 {
					t.Fatal("retransmitted what is too old")
				}
			})
		})
	}
}

// TestRetransmissionIsBounded: in all, and on a narrow path to a part of what it carries.
func TestRetransmissionIsBounded(t *testing.T) {
	for _, c := range []struct {
		budget uint64
		want   int // at once
	}{{0, retransmitBurst}, {4_000_000, 104}, {100_000, leastRetransmits}} {
		onStage(t, Config{}, func(st *stage) {
			bob := st.slot("bob", "1", KindVideo)
			bob.slot.Ready()
			alice := st.camera("alice", "", 180)
			alice.frame(true, 2*retransmitBurst)
			var numbers []uint16
			for _, p := range bob.take() {
				numbers = append(numbers, p.SequenceNumber)
			}
			// A path that carries little still shows a layer of which nothing is known.
			alice.layer.rate = rateMeter{known: true, bits: 1}
			st.room.SetBudget("bob", c.budget)
			bob.slot.NACK(numbers)
			synctest.Wait()
			if n := len(bob.take()); n != c.want {
				t.Errorf("budget %d: %d packets at once, want %d", c.budget, n, c.want)
			}
		})
	}
}

// TestOnePacketIsSentAgainOnceInARoundTrip, however often it is asked for.
func TestOnePacketIsSentAgainOnceInARoundTrip(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		roundTrip time.Duration // 0: not known
		want      int           // in 600 ms
	}{{0, 6}, {5 * ms, 20}, {60 * ms, 10}, {200 * ms, 3}, {time.Second, 2}} {
		onStage(t, Config{}, func(st *stage) {
			st.room.SetRoundTrip("bob", c.roundTrip) // not a subscriber yet
			bob := st.slot("bob", "1", KindVideo)
			bob.slot.Ready()
			st.room.SetRoundTrip("bob", 300*ms)
			st.room.SetRoundTrip("bob", c.roundTrip)
			alice := st.camera("alice", "", 180)
			alice.frame(true, 1)
			number := bob.take()[0].SequenceNumber
			for range 60 {
				bob.slot.NACK([]uint16{number})
				st.pass(10 * ms)
			}
			if n := len(bob.take()); n != c.want {
				t.Errorf("round trip %v: one packet was sent again %d times in 600 ms, want %d", c.roundTrip, n, c.want)
			}
		})
	}
}

func TestKeyframeRequestsAreCoalesced(t *testing.T) {
	onStage(t, Config{}, func(st *stage) {
		alice := st.camera("alice", "", 180)
		var viewers []*screenful
		for i := range 20 {
			v := st.slot(PeerID(fmt.Sprint("viewer", i)), "1", KindVideo)
			v.slot.Ready()
			viewers = append(viewers, v)
		}
		alice.frame(true, 1)
		st.pass(time.Second)
		before := alice.asked()
		for _, v := range viewers {
			v.slot.KeyframeRequested()
		}
		synctest.Wait()
		if n := alice.asked() - before; n != 1 {
			t.Fatalf("%d requests", n)
		}
		st.pass(time.Second)
		if n := alice.asked() - before; n != 2 {
			t.Fatalf("%d requests: the ones within the interval are made once, later", n)
		}
	})
}
