package front

import (
	"io"
	"net"
	"time"
)

// lingerAfterServer is how long a client may keep its side open once the backend
// has said its last byte. Nothing the client could still send would be heard.
const lingerAfterServer = 5 * time.Second

// splice copies both ways until both sides have ended. The end of one direction
// is passed on as a half-close, since a client may end its request before it
// reads the answer. A broken side breaks the other.
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

// closeWrite half-closes a TCP connection and reports whether it could.
func closeWrite(c net.Conn) bool {
	tcp, ok := c.(*net.TCPConn)
	return ok && tcp.CloseWrite() == nil
}
