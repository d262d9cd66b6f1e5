package devcluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// SentinelMaster is the name under which Sentinels know the store.
const SentinelMaster = "house"

// ErrNoSentinels means that no Sentinel can run here, and why.
var ErrNoSentinels = errors.New("real Sentinels need Linux and redis-server (Debian: redis-server)")

// SentinelsAble returns why no Sentinel can run here, or nil.
func SentinelsAble() error {
	if runtime.GOOS != "linux" { // elsewhere a killed supervisor would leave them behind
		return ErrNoSentinels
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		return ErrNoSentinels
	}
	return nil
}

// BecomeSentinel replaces this process by a Sentinel that watches a master, both host:port. A port of 0 is chosen. It calls
// announce with the Sentinel's address first, and returns only an error.
//
// The store has no replica, so the Sentinels never promote anybody: they lead nodes to the store, as they do in production.
func BecomeSentinel(listen, master, dir, name string, announce func(address string) error) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return ErrNoSentinels
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", listen, err)
	}
	if port == "0" {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			return fmt.Errorf("choose a port: %w", err)
		}
		_, port, _ = net.SplitHostPort(l.Addr().String()) // a listener's address has both
		if err := l.Close(); err != nil {
			return fmt.Errorf("choose a port: %w", err)
		}
	}
	masterHost, masterPort, err := net.SplitHostPort(master)
	if err != nil {
		return fmt.Errorf("watch %s: %w", master, err)
	}
	config := filepath.Join(dir, name+".conf") // the Sentinel writes to it
	text := fmt.Sprintf("bind %s\nport %s\nprotected-mode no\ndir %s\n"+
		"sentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %[4]s 1000\n", host, port, dir, SentinelMaster, masterHost, masterPort)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the Sentinel's configuration: %w", err)
	}
	if err := announce(net.JoinHostPort(host, port)); err != nil {
		return err
	}
	return become(program, []string{program, config, "--sentinel"}, os.Environ())
}
