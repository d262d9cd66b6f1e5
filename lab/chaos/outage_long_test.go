//go:build long

package chaos

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestOutages runs each of these scenarios once.
func TestOutages(t *testing.T) {
	tool.Find(t, "redis-server")
	cluster, store := startCluster(t, devcluster.Options{Sentinels: 3})
	for i, s := range ofOutages() {
		t.Run(string(s.name), func(t *testing.T) {
			o := shortRun(s.name, cluster, store)
			o.Seed += uint64(i)
			if r := runIn(t, t.Context(), o); !r.Kept || len(r.Trials) != 1 {
				t.Errorf("kept %t in %d trials, want 1", r.Kept, len(r.Trials))
			}
		})
	}
}
