package balancer

import (
	"io"
	"net"
	"time"
)

// lingerAfterServer is how long a client may keep its side open after the backend's end.
const lingerAfterServer = 5 * time.Second

// splice copies both ways until both sides have ended. An end is passed on as a half-close; a broken side breaks the
// other.
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
	tcp, ok := c.(*net.TCPConn)
	return ok && tcp.CloseWrite() == nil
}
