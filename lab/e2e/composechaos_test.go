//go:build long && linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

var cutPackets = regexp.MustCompile(`counter packets [1-9]`)

// TestChaosOnCompose hurts the containers of docker-compose.yml in each way that an engine can, with the same verdicts as a cluster
// of processes. HOLDFAST_SCENARIOS names others, HOLDFAST_TRIALS says how often.
func TestChaosOnCompose(t *testing.T) { //nolint:paralleltest // as TestComposeFile
	takes(t, atOnce)
	binary, err := devcluster.Binary()
	if err != nil {
		t.Fatal(err)
	}
	c := startComposed(t)
	c.healthy()
	scenarios, trials := os.Getenv("HOLDFAST_SCENARIOS"), os.Getenv("HOLDFAST_TRIALS")
	if scenarios == "" {
		scenarios = "kill freeze two-of-three edge-kill store-kill store-pause partition drain rolling"
	}
	if trials == "" {
		trials = "1"
	}
	chaos := func(scenario string) (said string, err error) {
		command := exec.CommandContext(t.Context(), binary, "chaos", scenario, "--compose", c.project, "--trials", trials, "--rooms", "3", "--peers", "2") //nolint:gosec // our own binary
		command.Env = append(os.Environ(), c.env...)
		text, err := command.CombinedOutput()
		return string(text), err
	}
	for scenario := range strings.FieldsSeq(scenarios) {
		t.Run(scenario, func(t *testing.T) {
			began := time.Now()
			said, err := chaos(scenario)
			t.Logf("%v\n%s", time.Since(began).Round(time.Second), said)
			if err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("partition.sh", func(t *testing.T) {
		id := strings.TrimSpace(c.containers("sfu-1"))
		said := c.run("", "bash", "../chaos/scripts/partition.sh", id, "4")
		if !cutPackets.MatchString(said) {
			t.Errorf("nothing was cut: %s", said)
		}
		c.healthy()
	})
	for _, scenario := range []string{"loss", "death-during-drain"} {
		if said, err := chaos(scenario); err == nil || !strings.Contains(said, "leave --compose away") {
			t.Errorf("%s: %v, %s", scenario, err, said)
		}
	}
	eventually(t, time.Minute, "nothing is left hurt", func() error {
		if said := c.compose("ps", "-q"); len(strings.Fields(said)) != 7 {
			return fmt.Errorf("%w: %s", errStates, said)
		}
		return nil
	})
	c.healthy()
}
