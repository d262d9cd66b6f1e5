// Package storetest starts the stores that tests run against, and holds the contract that
// every store of pins must keep.
//
// It promises that a store is empty, belongs to one test and ends with it. The kinds are the
// embedded store and real servers: one alone, with Sentinels, and as a Redis Cluster, each also
// with TLS. A test whose server is not installed is skipped, or fails where CI is set.
//
// It does not know what is kept in a store. Only tests import it. Begin with OnEach and Contract.
package storetest

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Server is one empty store.
type Server struct {
	Name string // "miniredis", "redis", "sentinel" or "cluster"
	URL  string
	// Raw does what no Store would: damage a value, expire a key, flush everything.
	Raw redis.UniversalClient
}

// A busy machine must not fail tests that are not about time-outs.
const patience = "?dial_timeout=20s&read_timeout=20s&write_timeout=20s&pool_timeout=20s"

// Kinds are the names Start takes.
func Kinds() []string { return []string{"miniredis", "redis"} }

// Start runs an empty store of the given kind until the test ends. Without redis-server the test is skipped, or fails
// when CI=true.
func Start(t testing.TB, kind string) Server {
	t.Helper()
	if kind == "redis" {
		server := StartAlone(t).Server
		server.URL += patience
		return server
	}
	address := miniredis.RunT(t).Addr()
	raw := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = raw.Close() })
	return Server{Name: kind, URL: "redis://" + address + patience, Raw: raw}
}

// OnEach runs test once on each kind of store, each time on an empty one.
func OnEach(t *testing.T, test func(t *testing.T, server Server)) {
	t.Helper()
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) { test(t, Start(t, kind)) })
	}
}
