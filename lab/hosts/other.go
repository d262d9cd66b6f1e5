//go:build !linux

package hosts

import "context"

// Network does not exist here.
type Network struct{}

// Able returns ErrUnable.
func Able() error { return ErrUnable }

// Alone returns false.
func Alone() bool { return false }

// RunAlone refuses.
func RunAlone(context.Context, string, ...string) error { return ErrUnable }

// Name refuses.
func Name(string, map[string]string) error { return ErrUnable }

// Make refuses.
func Make([]string) (*Network, error) { return nil, ErrUnable }

// Host refuses.
func (*Network) Host(string) (Host, error) { return Host{}, ErrUnable }

// Hurt refuses.
func (*Network) Hurt(string, Fault) error { return ErrUnable }

// Mend refuses.
func (*Network) Mend(string) (uint64, error) { return 0, ErrUnable }

// Close does nothing.
func (*Network) Close() error { return nil }
