package storetest

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Fleet is a set of servers behind one URL.
type Fleet struct {
	Server

	Processes []*Process // of data; the master first
	Sentinels []*Process
}

// StartAlone runs one redis-server that a test may kill and restart.
func StartAlone(t testing.TB) Fleet { t.Helper(); return alone(t, nil) }

// StartSentinel runs a master, two replicas and three Sentinels. A master without a replica takes no writes, as
// docs/STORE.md demands.
func StartSentinel(t testing.TB) Fleet { t.Helper(); return sentinel(t, nil) }

// StartCluster runs a Redis Cluster of three masters without replicas.
func StartCluster(t testing.TB) Fleet { t.Helper(); return cluster(t, nil) }

// StartAloneTLS is StartAlone with TLS: like the two below it has everybody speak TLS and show a certificate.
func StartAloneTLS(t testing.TB) Fleet { t.Helper(); return alone(t, newPapers(t)) }

// StartSentinelTLS is StartSentinel with TLS.
func StartSentinelTLS(t testing.TB) Fleet { t.Helper(); return sentinel(t, newPapers(t)) }

// StartClusterTLS is StartCluster with TLS.
func StartClusterTLS(t testing.TB) Fleet { t.Helper(); return cluster(t, newPapers(t)) }

// MasterOf is the process that owns a key's slot.
func (f Fleet) MasterOf(t testing.TB, key string) *Process {
	t.Helper()
	whole, ok := f.Raw.(*redis.ClusterClient)
	if !ok {
		t.Fatalf("a store of kind %s has no slots", f.Name)
	}
	client, err := whole.MasterForKey(t.Context(), key)
	if err != nil {
		t.Fatalf("find the master of %s: %v", key, err)
	}
	at := slices.IndexFunc(f.Processes, func(p *Process) bool { return p.Address == client.Options().Addr })
	if at < 0 {
		t.Fatalf("the master of %s is at %s, which is none of ours", key, client.Options().Addr)
	}
	return f.Processes[at]
}

// MoveSlot gives an empty slot to another master.
func (f Fleet) MoveSlot(t testing.TB, slot int, to *Process) {
	t.Helper()
	ask := func(p *Process, args ...any) string {
		client := p.client()
		defer func() { _ = client.Close() }()
		said, err := client.Do(t.Context(), append([]any{"cluster"}, args...)...).Text()
		if err != nil {
			t.Fatalf("cluster %v at %s: %v", args, p.Address, err)
		}
		return said
	}
	id := ask(to, "myid")
	for _, p := range append([]*Process{to}, f.Processes...) { // its new owner first: it has one at every moment
		ask(p, "setslot", slot, "node", id)
	}
}

func alone(t testing.TB, papers *papers) Fleet { t.Helper(); return aloneIn(t, papers, nil) }

func aloneIn(t testing.TB, papers *papers, environment []string) Fleet {
	t.Helper()
	one := launchIn(t, papers, environment, data)
	raw := one.client()
	t.Cleanup(func() { _ = raw.Close() })
	return Fleet{Server: Server{Name: "redis", URL: papers.url("", one.Address), Raw: raw}, Processes: []*Process{one}}
}

// StartSocket runs one redis-server that is reached by a socket in the file system.
func StartSocket(t testing.TB) Fleet {
	t.Helper()
	path := filepath.Join(t.TempDir(), "redis.sock")
	one := launch(t, nil, data+"unixsocket "+path+"\n")
	raw := one.client()
	t.Cleanup(func() { _ = raw.Close() })
	return Fleet{Server: Server{Name: "socket", URL: "unix://" + path, Raw: raw}, Processes: []*Process{one}}
}

// One takes over when the master dies, and needs another itself.
const replicas = 2

func sentinel(t testing.TB, papers *papers) Fleet {
	t.Helper()
	servers := []*Process{launch(t, papers, data+"min-replicas-to-write 1\nrepl-diskless-sync-delay 0\n")}
	host, port, _ := net.SplitHostPort(servers[0].Address)
	for range replicas {
		servers = append(servers, launch(t, papers, data+"min-replicas-to-write 1\nrepl-diskless-sync-delay 0\nreplicaof "+host+" "+port+"\n"))
	}
	var sentinels []*Process
	var addresses []string
	for range 3 {
		config := fmt.Sprintf("sentinel monitor house %s %s 2\nsentinel down-after-milliseconds house 1000\n"+
			"sentinel failover-timeout house 5000\nsentinel parallel-syncs house 1\n", host, port)
		p := launch(t, papers, config, "--sentinel")
		sentinels, addresses = append(sentinels, p), append(addresses, p.Address)
	}
	wait(t, "the Sentinels to know each other and the replicas", func(ctx context.Context) error {
		for _, at := range sentinels {
			if err := knowsAll(ctx, at); err != nil {
				return err
			}
		}
		return nil
	})
	raw := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "house", SentinelAddrs: addresses, Protocol: 2, DisableIdentity: true, TLSConfig: papers.tls(),
	})
	t.Cleanup(func() { _ = raw.Close() })
	wait(t, "the master to take writes", func(ctx context.Context) error { return raw.Set(ctx, "storetest", "", time.Millisecond).Err() })
	return Fleet{
		Server:    Server{Name: "sentinel", URL: papers.url("+sentinel", strings.Join(addresses, ",")+"/house"), Raw: raw},
		Processes: servers, Sentinels: sentinels,
	}
}

func knowsAll(ctx context.Context, p *Process) error {
	client := redis.NewSentinelClient(p.options())
	defer func() { _ = client.Close() }()
	state, err := client.Master(ctx, "house").Result()
	if err != nil {
		return err
	}
	if state["num-slaves"] != fmt.Sprint(replicas) || state["num-other-sentinels"] != "2" || state["flags"] != "master" {
		return fmt.Errorf("%s sees %s replicas, %s Sentinels, flags %s", p.Address, state["num-slaves"], state["num-other-sentinels"], state["flags"])
	}
	return nil
}

func cluster(t testing.TB, papers *papers) Fleet {
	t.Helper()
	config := data + "cluster-enabled yes\ncluster-node-timeout 2000\ncluster-require-full-coverage no\n"
	if papers != nil {
		config += "tls-cluster yes\n"
	}
	var all []*Process
	var addresses []string
	ports := make([]string, 3)
	for i := range ports {
		ports[i] = freePort(t)
		p := launch(t, papers, config+"cluster-port "+ports[i]+"\n")
		all, addresses = append(all, p), append(addresses, p.Address)
	}
	ctx := t.Context()
	for i, p := range all {
		client := p.client()
		first, last := i*16384/3, (i+1)*16384/3-1
		err := client.ClusterAddSlotsRange(ctx, first, last).Err()
		for j, other := range all {
			if host, port, _ := net.SplitHostPort(other.Address); j != i && err == nil {
				err = client.Do(ctx, "cluster", "meet", host, port, ports[j]).Err()
			}
		}
		_ = client.Close()
		if err != nil {
			t.Fatalf("join %s to the cluster: %v", p.Address, err)
		}
	}
	wait(t, "the cluster to be whole", func(ctx context.Context) error {
		for _, p := range all {
			if err := whole(ctx, p); err != nil {
				return err
			}
		}
		return nil
	})
	raw := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, Protocol: 2, DisableIdentity: true, TLSConfig: papers.tls()})
	t.Cleanup(func() { _ = raw.Close() })
	return Fleet{Server: Server{Name: "cluster", URL: papers.url("+cluster", strings.Join(addresses, ",")), Raw: raw}, Processes: all}
}

// whole fails until three masters cover all slots.
func whole(ctx context.Context, p *Process) error {
	client := p.client()
	defer func() { _ = client.Close() }()
	state, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	if !strings.Contains(state, "cluster_state:ok") || !strings.Contains(state, "cluster_slots_ok:16384") || !strings.Contains(state, "cluster_size:3") {
		return fmt.Errorf("%s says %s", p.Address, state)
	}
	return nil
}
