package chaos

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestCalm: while gossip is lossy nobody is taken for dead. TestBrokenBuilds has a detection that is too fast.
func TestCalm(t *testing.T) {
	const percent = 20
	env := make(map[string][]string)
	for _, node := range []string{"sfu-1", "sfu-2", "sfu-3", "signaling-1", "signaling-2"} {
		env[node] = CalmEnv(Options{Percent: percent})
	}
	cluster, store := startCluster(t, devcluster.Options{NodeEnv: env})
	o := shortRun(Calm, cluster, store)
	o.Soak, o.Percent = 5*time.Second, percent
	if r := runIn(t, t.Context(), o); !r.Kept {
		t.Error("not every verdict was kept")
	}
}
