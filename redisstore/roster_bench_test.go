package redisstore

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// BenchmarkRoster asks who is in a room: the store, and every node for those whose sockets it has.
func BenchmarkRoster(b *testing.B) {
	for _, people := range []int{10, 1000, 10000} {
		r := newRosterRig(b, storetest.StartAlone(b).Server)
		a := storetest.At("a", 1000, 1)
		r.claim(a)
		seq, all := uint64(0), make([]roster.Peer, 0, people)
		for i := range people {
			all = append(all, roster.Peer{ID: fmt.Sprintf("peer-%011d", i), Identity: fmt.Sprintf("user-%011d", i), Name: fmt.Sprintf("Person %d", i), Since: time.Now()})
		}
		for some := range slices.Chunk(all, 1000) {
			_, err := r.WriteRosters(b.Context(), []roster.Change{{Room: rosterRoom, Pin: a, Seq: seq + 1, After: seq, Put: some}})
			if err != nil {
				b.Fatal(err)
			}
			seq++
		}
		b.Run(fmt.Sprintf("people=%d/store", people), func(b *testing.B) {
			for b.Loop() {
				if found, err := r.Roster(b.Context(), rosterRoom); err != nil || len(found.Peers) != people {
					b.Fatalf("%d people, %v", len(found.Peers), err)
				}
			}
			bytes, err := r.raw.MemoryUsage(b.Context(), r.keys.roster(rosterRoom), 0).Result()
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(bytes)/float64(people), "bytes/person")
		})
		for _, nodes := range []int{3, 20} {
			b.Run(fmt.Sprintf("people=%d/ask=%d-nodes", people, nodes), func(b *testing.B) { askAll(b, all, nodes) })
		}
	}
}

// askAll is the design without a roster: each node answers for its part of the people.
func askAll(b *testing.B, all []roster.Peer, nodes int) {
	var addresses []string
	for n := range nodes {
		var part []roster.Peer
		for i := n; i < len(all); i += nodes {
			part = append(part, all[i])
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(part) }))
		b.Cleanup(server.Close)
		addresses = append(addresses, server.URL)
	}
	for b.Loop() {
		found := make([][]roster.Peer, nodes)
		var asks errgroup.Group
		for n, address := range addresses {
			asks.Go(func() error {
				answer, err := http.Get(address)
				if err != nil {
					return err
				}
				defer answer.Body.Close()
				return json.NewDecoder(answer.Body).Decode(&found[n])
			})
		}
		if err := asks.Wait(); err != nil {
			b.Fatal(err)
		}
		if people := slices.Concat(found...); len(people) != len(all) {
			b.Fatalf("%d people, want %d", len(people), len(all))
		} else {
			roster.Sort(people)
		}
	}
}
