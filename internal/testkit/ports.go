package testkit

import (
	"net"
	"testing"
)

// SilentAndRefused returns two addresses. One accepts connections and says nothing until the test ends, and the other
// refuses them.
func SilentAndRefused(t testing.TB) (silent, refused string) {
	t.Helper()
	listen := func() net.Listener {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return lis
	}
	open, closed := listen(), listen()
	t.Cleanup(func() { _ = open.Close() })
	_ = closed.Close()
	return open.Addr().String(), closed.Addr().String()
}
