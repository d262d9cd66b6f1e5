package testkit

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// SilentAndRefused returns two addresses. One accepts connections and says nothing until the test ends, and the other
// refuses them.
func SilentAndRefused(t testing.TB) (silent, refused string) {
	t.Helper()
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = open.Close() })
	return open.Addr().String(), FreeAddress(t)
}

// FreeAddress returns one of 127.0.0.1 that nothing uses, outside the range from which the kernel gives ports to sockets that ask for none in
// particular: such a port would soon be another socket's.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 200 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+rand.IntN(12_000)))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
