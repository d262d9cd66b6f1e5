package control

import (
	"crypto/rand"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// One signaling node's Watch and call must go on while others bring garbage, no
// certificate, another key, an old TLS or nothing at all.
func TestStrangersAreRefusedAndDisturbNobody(t *testing.T) {
	node, client, watch := watchedNode(t)

	garbage(t, node.addr)
	node.log.Wait(t, "does not speak TLS")
	stranger := startPool(t, mustKey(t, testKeyText+"-other"), DefaultConfig())
	if _, err := stranger.HelloAt(testContext(t), node.addr); err == nil {
		t.Fatal("a stranger was told the boot")
	} else if !strings.Contains(err.Error(), errWrongKey.Error()) {
		t.Fatalf("a stranger is told %v, want %q in it", err, errWrongKey)
	}
	node.log.Wait(t, "another cluster key")
	if got := handshakeWithout(t, node.addr, tls.VersionTLS13); got == nil {
		t.Fatal("a client without a certificate was let in")
	}
	if got := handshakeWithout(t, node.addr, tls.VersionTLS12); got == nil {
		t.Fatal("TLS 1.2 was accepted")
	}
	portCheck(t, node.addr)
	for range 50 {
		garbage(t, node.addr)
	}
	// Connections that say nothing push each other out, not the one that has proven the key.
	idle := []net.Conn{}
	for range unprovenPerAddress + 20 {
		conn, err := net.Dial("tcp", node.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
	}
	if _, err := idle[0].Read(make([]byte, 1)); err == nil {
		t.Fatal("the node spoke to a connection that said nothing")
	}

	node.media.heartbeat <- struct{}{}
	if heartbeat, err := watch.Recv(); err != nil || heartbeat.GetSeq() != 2 {
		t.Fatalf("the honest stream: %v, %v, want heartbeat 2", heartbeat, err)
	}
	if reply, err := client.Outrank(testContext(t), &OutrankRequest{Room: "r", Pin: PinProto(testPin)}); err != nil || !reply.GetHeld() {
		t.Fatalf("Outrank = %v, %v", reply, err)
	}
	if lines := strings.Count(node.log.String(), "control connection refused"); lines > refusalBurst+2 {
		t.Fatalf("%d lines about strangers, want few", lines)
	}
	if strings.Contains(node.log.String(), testKeyText) {
		t.Fatal("the key is in the log")
	}
}

// Two clusters may share their key: their names differ, and both are said where they meet.
func TestOtherClusterIsRefusedByName(t *testing.T) {
	red, err := mustKey(t, testKeyText).In("red")
	if err != nil {
		t.Fatal(err)
	}
	node := startNode(t, mustKey(t, testKeyText), "127.0.0.1:0", "1769000000000-00000001")
	_, err = startPool(t, red, DefaultConfig()).HelloAt(testContext(t), node.addr)
	if err == nil || !strings.Contains(err.Error(), errOtherCluster.Error()) || !strings.Contains(err.Error(), "red") {
		t.Fatalf("BootAt = %v", err)
	}
	node.log.Wait(t, "control connection refused")
	if _, err := startPool(t, mustKey(t, testKeyText), DefaultConfig()).HelloAt(testContext(t), node.addr); err != nil {
		t.Fatal(err)
	}
}

func TestServerWithAnotherKeyIsNotTrusted(t *testing.T) {
	node := startNode(t, mustKey(t, testKeyText+"-other"), "127.0.0.1:0", "1769000000000-00000001")
	_, err := startPool(t, mustKey(t, testKeyText), DefaultConfig()).HelloAt(testContext(t), node.addr)
	if err == nil || !strings.Contains(err.Error(), errWrongKey.Error()) {
		t.Fatalf("BootAt = %v, want %q in it", err, errWrongKey)
	}
}

func TestMessageSizes(t *testing.T) {
	key := mustKey(t, testKeyText)
	node := startNode(t, key, "127.0.0.1:0", "1769000000000-00000001")
	client, err := startPool(t, key, DefaultConfig()).Client(node.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Outrank(testContext(t), &OutrankRequest{Room: strings.Repeat("x", 512<<10)}); err != nil {
		t.Fatalf("a message of 512 KiB: %v", err)
	}
	_, err = client.Outrank(testContext(t), &OutrankRequest{Room: strings.Repeat("x", 2<<20)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("a message of 2 MiB: %v, want ResourceExhausted", err)
	}
	if _, err := client.Outrank(testContext(t), &OutrankRequest{Room: "r"}); err != nil {
		t.Fatalf("after it: %v", err)
	}
}

func TestServeEndsWithItsStreams(t *testing.T) {
	node, _, watch := watchedNode(t)
	if err := node.stop(); err != nil {
		t.Fatalf("Serve = %v, want nil", err)
	}
	if _, err := watch.Recv(); err == nil {
		t.Fatal("the stream outlived its server")
	}
}

// garbage sends random bytes and waits until the node hangs up.
func garbage(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	noise := make([]byte, 300)
	_, _ = rand.Read(noise)
	noise[0] = 'G' // never a TLS record
	if _, err := conn.Write(noise); err != nil {
		return // It hung up already.
	}
	_, _ = io.Copy(io.Discard, conn)
}

// portCheck opens a connection and closes it without a word.
func portCheck(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// handshakeWithout shows no certificate and returns how the node ended it.
func handshakeWithout(t *testing.T, addr string, version uint16) error {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, NextProtos: []string{"h2"}})
	if err != nil {
		return err
	}
	defer conn.Close()
	for { // In TLS 1.3 the refusal comes after the client's handshake.
		if _, err := conn.Read(make([]byte, 64)); err != nil {
			return err
		}
	}
}
