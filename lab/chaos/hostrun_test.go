package chaos

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// mayMakeHosts skips, and says what is not tested, where that needs a right that this process has not.
func mayMakeHosts(t *testing.T) {
	t.Helper()
	tool.Find(t, "ip")
	tool.Find(t, "nft")
	err := hosts.Able()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true" || os.Getuid() == 0:
		t.Fatal(err)
	default:
		t.Skipf("NOT tested: partition, loss and delay. %v; run the tests as root", err)
	}
}

// command is a short run of a scenario as people start it.
func command(t *testing.T, scenario Name, trials string) *exec.Cmd {
	t.Helper()
	binary, err := devcluster.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return commandOf(t, binary, scenario, trials)
}

func commandOf(t *testing.T, binary string, scenario Name, trials string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), binary, "chaos", string(scenario), "--trials", trials,
		"--rooms", "3", "--peers", "2", "--browsers", "0", "--seed", "1", "--json")
}

// reported runs a command and reads its report. The error is how it ended.
func reported(t *testing.T, cmd *exec.Cmd) (*Report, error) {
	t.Helper()
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	r := &Report{}
	if decoding := json.Unmarshal(out, r); decoding != nil {
		t.Fatalf("%v, %v\n%s", err, decoding, said.String())
	}
	t.Log(said.String())
	return r, err
}
