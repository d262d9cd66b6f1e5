package egress

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/pion/stun/v4"
)

// check is a browser's ICE check for a user.
func check(tb testing.TB, user string) []byte {
	tb.Helper()
	m, err := stun.Build(stun.BindingRequest, stun.TransactionID, stun.NewUsername(user+":theirs"),
		stun.NewShortTermIntegrity("password"), stun.Fingerprint)
	if err != nil {
		tb.Fatal(err)
	}
	return m.Raw
}

func source(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i >> 16)}), uint16(i))
}

func TestAUserIsHeardFromSoManyAddresses(t *testing.T) {
	s := newSources()
	s.serve("ours")
	s.serve("other")
	heard := func(packet []byte, from netip.AddrPort) int {
		if s.admits(packet, from) {
			return 1
		}
		return 0
	}
	admitted := 0
	for i := range 5000 {
		admitted += heard(check(t, "ours"), source(i))
	}
	if admitted != MaxSources || s.refused.Load() != 5000-MaxSources {
		t.Errorf("heard from %d addresses, %d refused", admitted, s.refused.Load())
	}
	mapped := netip.AddrPortFrom(netip.AddrFrom16(source(3).Addr().As16()), 3)
	if heard(check(t, "ours"), source(3)) == 0 || heard(check(t, "ours"), mapped) == 0 {
		t.Error("an address that was heard is heard no more")
	}
	if heard(check(t, "other"), source(4000)) == 0 {
		t.Error("another user is not heard")
	}
	// What is no check is the mux's affair, as are users that nobody serves.
	answer, err := stun.Build(stun.BindingSuccess, stun.TransactionID, stun.NewUsername("ours:theirs"))
	if err != nil {
		t.Fatal(err)
	}
	for name, packet := range map[string][]byte{"an answer": answer.Raw, "media": {0x80, 96, 0, 1}, "a stranger": check(t, "nobody")} {
		for i := range 100 {
			if heard(packet, source(10_000+i)) == 0 {
				t.Errorf("%s is not heard", name)
				break
			}
		}
	}
	if len(s.byUser) != 2 {
		t.Errorf("%d users are remembered", len(s.byUser))
	}
	s.forget("ours")
	s.serve("ours") // Another one of that name would begin anew.
	if heard(check(t, "ours"), source(4000)) == 0 {
		t.Error("a new user is not heard")
	}
}

func TestHearingAllocatesNothing(t *testing.T) {
	s := newSources()
	s.serve("ours")
	packets := [][]byte{check(t, "ours"), append([]byte{0x80, 96}, make([]byte, 1200)...)}
	if n := testing.AllocsPerRun(1000, func() {
		for _, packet := range packets {
			s.admits(packet, source(1))
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCheckedUser: what is read agrees with what Pion reads, of all that Pion takes.
func FuzzCheckedUser(f *testing.F) {
	f.Add(check(f, "ours"))
	f.Add(check(f, ""))
	f.Add(check(f, "ours")[:30])
	f.Add([]byte{0, 1, 0xff, 0xff, 0x21, 0x12, 0xa4, 0x42, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 6, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, packet []byte) {
		got := checkedUser(packet)
		m := &stun.Message{Raw: append([]byte(nil), packet...)}
		if m.Decode() != nil || m.Type != stun.BindingRequest {
			return
		}
		name, err := m.Get(stun.AttrUsername)
		if err != nil {
			return // It may stand behind the integrity, where it does not count.
		}
		if want, _, _ := bytes.Cut(name, []byte{':'}); got == nil || !bytes.Equal(got, want) {
			t.Fatalf("read %q, the user name is %q", got, name)
		}
	})
}
