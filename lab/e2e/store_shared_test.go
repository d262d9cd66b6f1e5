package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// TestSharedStore runs two clusters with nodes and rooms of the same names on one Redis. A node is killed in each; each
// call goes on where its own cluster moves it.
func TestSharedStore(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartAlone(t)
	room := roomOn(t, "sfu-1", "shared")
	var clusters []*devcluster.Cluster
	var calls []*people
	for range 2 {
		c := startCluster(t, devcluster.Options{Redis: fleet.URL})
		g := gather(t, c, room, 2)
		g.everybodyReceives(t, time.Minute)
		clusters, calls = append(clusters, c), append(calls, g)
	}
	for i, c := range clusters {
		before := calls[i].onceOn(t, c, 30*time.Second)
		if err := c.Kill(t.Context(), before.Node, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		calls[i].everybodyReceives(t, 30*time.Second)
		if after := calls[i].onceOn(t, c, 30*time.Second); after.Node == before.Node || after.Epoch != before.Epoch+1 {
			t.Errorf("cluster %d: %s epoch %d became %s epoch %d, want one move", i+1, before.Node, before.Epoch, after.Node, after.Epoch)
		}
	}
	for i, c := range clusters {
		calls[i].everybodyReceives(t, 30*time.Second)
		calls[i].onceOn(t, c, 30*time.Second)
	}
}
