package sfu

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/stun/v4"
)

// stunServer answers that whoever asks is at an address, with its own port changed by so many. It keeps silent to the first questions.
func stunServer(t *testing.T, outside string, portChange, deaf int) string {
	t.Helper()
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 1500)
		for asked := 0; ; asked++ {
			count, from, err := socket.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			message := stun.Message{Raw: slices.Clone(buffer[:count])}
			if asked < deaf || message.Decode() != nil {
				continue
			}
			answer, err := stun.Build(stun.NewTransactionIDSetter(message.TransactionID), stun.BindingSuccess,
				&stun.XORMappedAddress{IP: net.ParseIP(outside), Port: from.Port + portChange}, stun.Fingerprint)
			if err == nil {
				_, _ = socket.WriteToUDP([]byte("no STUN"), from)
				_, _ = socket.WriteToUDP(answer.Raw, from)
			}
		}
	}()
	t.Cleanup(func() { _ = socket.Close(); <-done })
	return socket.LocalAddr().String()
}

func TestDiscoverAsksUntilOneAnswers(t *testing.T) {
	silent, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cfg := DefaultConfig()
	found, err := Discover(t.Context(), cfg, []string{silent.LocalAddr().String(), stunServer(t, "203.0.113.9", 0, 1)})
	if err != nil || !slices.Equal(found, []string{"203.0.113.9"}) {
		t.Errorf("found %v, %v", found, err)
	}
	cfg.AdvertiseIPs = found
	told, err := candidates(&net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7982}, Config{Loopback: true, AdvertiseIPs: found})
	if want := []netip.AddrPort{netip.MustParseAddrPort("203.0.113.9:7982")}; err != nil || !slices.Equal(told, want) {
		t.Errorf("clients are told %v, %v", told, err)
	}
}

func TestDiscoverFindsANATThatChangesThePort(t *testing.T) {
	var port *PortError
	if found, err := Discover(t.Context(), DefaultConfig(), []string{stunServer(t, "203.0.113.9", 1, 0)}); !errors.As(err, &port) || !strings.Contains(err.Error(), "one to one") {
		t.Errorf("found %v, %v", found, err)
	}
}

func TestDiscoverGivesUp(t *testing.T) {
	for _, servers := range [][]string{{stunServer(t, "203.0.113.9", 0, 1000)}, {"[::1]:3478"}} { // the media address is of IPv4
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if found, err := Discover(ctx, DefaultConfig(), servers); !errors.Is(err, errNotAnswered) {
			t.Errorf("of %v found %v, %v", servers, found, err)
		}
	}
}

// FuzzMapped reads anything without harm, and takes nothing that answers another question.
func FuzzMapped(f *testing.F) {
	id := [stun.TransactionIDSize]byte{1}
	good, err := stun.Build(stun.NewTransactionIDSetter(id), stun.BindingSuccess, &stun.XORMappedAddress{IP: net.IPv4(203, 0, 113, 9), Port: 7982})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good.Raw)
	f.Fuzz(func(t *testing.T, packet []byte) {
		at, ok := mapped(packet, id)
		if ok && (!at.IsValid() || at.Port() == 0 || !strings.Contains(string(packet), string(id[:]))) {
			t.Errorf("%x is read as %v", packet, at)
		}
	})
}
