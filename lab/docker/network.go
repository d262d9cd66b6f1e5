package docker

import (
	"context"
	"errors"

	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// Network is the part of lab/chaos's that a container engine can do: it cuts a container off from everybody.
type Network struct{ Cluster *Cluster }

var errOnlyCuts = errors.New("containers can be cut off from everybody only")

// Hurt cuts a container off.
func (n Network) Hurt(service string, f hosts.Fault) error {
	if len(f.From) > 0 || f.Port != 0 || f.UDP || f.Percent != 0 || f.Delay != 0 {
		return errOnlyCuts
	}
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	return n.Cluster.Cut(ctx, service)
}

// Mend puts it back. It counts no packets: 1 says that the container was in no network until now.
func (n Network) Mend(service string) (hurt uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	away, err := n.Cluster.Join(ctx, service)
	if away {
		hurt = 1
	}
	return hurt, err
}
