package e2e

import (
	"fmt"
	"testing"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestStandbyAtAKnownAddress: a media node that was killed is back at its address, which browsers know, and stands by for the connections that
// were its own. Nobody notices the next deaths either.
func TestStandbyAtAKnownAddress(t *testing.T) {
	t.Parallel()
	needFirefox(t, 2)
	env := []string{"HOLDFAST_LOG_LEVEL=debug"}
	c := startCluster(t, devcluster.Options{SFU: 2, MediaHost: ownAddress(t), Standby: true, NodeEnv: map[string][]string{"sfu-1": env, "sfu-2": env}})
	b := &mixed{
		c:      c,
		fox:    &participant{page: openFirefox(t, "Felix", c.URL()+"?name=Felix")},
		chrome: &participant{page: openPage(t, "Clara", c.URL()+"?name=Clara")},
	}
	b.call(t, "sfu-1", nil, nil)
	for i := range 3 {
		b.goesOn(t, "killed", env, map[string][]continuity{})
		t.Log(fmt.Sprint("death ", i+1))
	}
}
