package balancer

import (
	"io"
	"net"
	"time"
)

const lingerAfterServer = 5 * time.Second

// splice copies bytes in both directions until both end. The end of one direction is passed on as a half-close. If
// one side breaks, the other is closed.
func splice(client, server net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := io.Copy(server, client); err != nil || !closeWrite(server) {
			client.Close()
			server.Close()
		}
	}()
	_, err := io.Copy(client, server)
	if err != nil || !closeWrite(client) {
		client.Close()
		server.Close()
	}
	_ = client.SetReadDeadline(time.Now().Add(lingerAfterServer))
	<-done
}

func closeWrite(c net.Conn) bool {
	half, ok := c.(interface{ CloseWrite() error })
	return ok && half.CloseWrite() == nil
}
