package sfu

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strconv"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// What Config.MediaTCP may be beside a port.
const (
	// MediaTCPSame takes the number of the UDP port.
	MediaTCPSame = "same"
	MediaTCPOff  = "off"
)

// socketTries is how many free UDP ports are tried until one is free for TCP too.
const socketTries = 20

func listen(cfg Config, log *slog.Logger) (*egress.Conn, error) {
	address, err := net.ResolveUDPAddr("udp", cfg.MediaAddress)
	if err != nil {
		return nil, fmt.Errorf("resolve media address %s: %w", cfg.MediaAddress, err)
	}
	for try := 1; ; try++ {
		sockets, err := egress.Listen(address, cores())
		if len(sockets) == 0 {
			return nil, fmt.Errorf("bind media socket: %w", err)
		}
		if err != nil {
			log.Warn("media is read on fewer cores", "wanted", cores(), "sockets", len(sockets), "error", err)
		}
		streams, err := listenTCP(cfg, sockets[0].LocalAddr())
		if err == nil {
			enlarge(sockets, log)
			batch := cfg.EgressBatch && runtime.GOOS == "linux"
			return egress.New(egress.Options{Gather: batch, Segment: batch, Streams: streams}, sockets...), nil
		}
		for _, socket := range sockets {
			socket.Close()
		}
		if address.Port != 0 || cfg.MediaTCP != MediaTCPSame || try == socketTries {
			return nil, fmt.Errorf("bind TCP port for media (another, or %q for none, will do): %w", MediaTCPOff, err)
		}
	}
}

// listenTCP returns nil where the node takes no media over TCP.
func listenTCP(cfg Config, udp net.Addr) (*net.TCPListener, error) {
	bound, ok := udp.(*net.UDPAddr)
	if !ok || cfg.MediaTCP == MediaTCPOff {
		return nil, nil
	}
	port := bound.Port
	if cfg.MediaTCP != MediaTCPSame {
		// Validate has checked that it is a number.
		port, _ = strconv.Atoi(cfg.MediaTCP)
	}
	network := "tcp"
	if bound.IP.To4() != nil {
		network = "tcp4"
	}
	return net.ListenTCP(network, &net.TCPAddr{IP: bound.IP, Port: port, Zone: bound.Zone})
}

// enlarge asks the kernel for larger buffers, of which it may give less.
func enlarge(sockets []*net.UDPConn, log *slog.Logger) {
	for _, socket := range sockets {
		for _, set := range []func(int) error{socket.SetReadBuffer, socket.SetWriteBuffer} {
			if err := set(socketBuffer); err != nil {
				log.Warn("media socket keeps its buffer size", "wanted_bytes", socketBuffer, "error", err)
			}
		}
	}
}

var errMediaTCP = errors.New(`want "same", "off" or a port`)

func checkMediaTCP(text string) error {
	if text == MediaTCPSame || text == MediaTCPOff {
		return nil
	}
	if port, err := strconv.ParseUint(text, 10, 16); err != nil || port == 0 {
		return fmt.Errorf("TCP port of media is %q: %w", text, errMediaTCP)
	}
	return nil
}
