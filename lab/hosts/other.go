//go:build !linux

package hosts

import "context"

// Network does not exist here.
type Network struct{}

// Able says that this system has no network namespaces.
func Able() error { return ErrUnable }

// Alone reports false: nothing is started alone here.
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

// Close has nothing to end.
func (*Network) Close() error { return nil }
