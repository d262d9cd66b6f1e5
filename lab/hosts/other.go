//go:build !linux

package hosts

import (
	"context"
	"time"
)

// Network does not exist here.
type Network struct{}

// Able says that this system has no network namespaces.
func Able() error { return ErrUnable }

// Alone reports false: nothing is started alone here.
func Alone() bool { return false }

// RunAlone refuses.
func RunAlone(context.Context, string, ...string) error { return ErrUnable }

// Relay refuses.
func Relay(context.Context, string, time.Duration) (uint64, error) { return 0, ErrUnable }

// Make refuses.
func Make([]string) (*Network, error) { return nil, ErrUnable }

// OwnIP is empty.
func (*Network) OwnIP() string { return "" }

// Host refuses.
func (*Network) Host(string) (Host, error) { return Host{}, ErrUnable }

// Cut refuses.
func (*Network) Cut(string, ...string) error { return ErrUnable }

// CutUDP refuses.
func (*Network) CutUDP(string, ...string) error { return ErrUnable }

// CutPort refuses.
func (*Network) CutPort(string, uint16, ...string) error { return ErrUnable }

// Lose refuses.
func (*Network) Lose(string, int) error { return ErrUnable }

// Delay refuses.
func (*Network) Delay(string, time.Duration) error { return ErrUnable }

// Mend refuses.
func (*Network) Mend(string) (uint64, error) { return 0, ErrUnable }

// Close has nothing to end.
func (*Network) Close() error { return nil }
