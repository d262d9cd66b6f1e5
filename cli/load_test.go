//go:build !node

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/lab/load"
)

// TestAnInterruptedLoadReports, to machines on a standard output that has nothing
// else on it, or into a file.
func TestAnInterruptedLoadReports(t *testing.T) {
	keys := map[string]string{"HOLDFAST_API_KEYS": goodKeys}
	const line = "load --url http://127.0.0.1:1 --rooms 2 --peers 2 --duration 1s --seed 7 "
	check := func(content string) {
		t.Helper()
		var r load.Report
		if err := json.Unmarshal([]byte(content), &r); err != nil {
			t.Fatalf("%v in %s", err, content)
		}
		if !r.Interrupted || r.Version != load.ReportVersion || r.People.Wanted != 4 || r.Parameters.Seed != 7 {
			t.Errorf("%+v", r)
		}
	}
	code, out, said := exec(t, keys, strings.Fields(line+"--json")...)
	if code != exitDone || !strings.Contains(said, "joined     0 of 4") {
		t.Errorf("exit code %d, said %s", code, said)
	}
	check(out)

	file := filepath.Join(t.TempDir(), "report.json")
	code, out, said = exec(t, keys, strings.Fields(line+"--out "+file)...)
	if code != exitDone || !strings.Contains(out, "joined     0 of 4") {
		t.Errorf("exit code %d, said %s", code, said)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	check(string(content))
}

// TestALoadOfARoom is one room, whatever the default is.
func TestALoadOfARoom(t *testing.T) {
	keys := map[string]string{"HOLDFAST_API_KEYS": goodKeys}
	const line = "load --url http://127.0.0.1:1 --peers 2 --duration 1s --json --room hall"
	code, out, said := exec(t, keys, strings.Fields(line)...)
	var r load.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if code != exitDone || r.People.Wanted != 2 {
		t.Errorf("exit code %d, %+v, said %s", code, r.People, said)
	}
	for flags, fault := range map[string]string{" --rooms 2": "leave out --rooms", " --room \x01": "--room"} {
		if code, _, said := exec(t, keys, strings.Fields(line+flags)...); code != exitUsage || !strings.Contains(said, fault) {
			t.Errorf("with%s: exit code %d, said %s", flags, code, said)
		}
	}
}

// TestALoadOfAURLAsksForItsKeys: that no development cluster was found here says nothing of the one that is named.
func TestALoadOfAURLAsksForItsKeys(t *testing.T) {
	code, _, said := exec(t, map[string]string{"XDG_RUNTIME_DIR": t.TempDir()}, strings.Fields("load --url http://127.0.0.1:1")...)
	if code != exitUsage || !strings.Contains(said, "HOLDFAST_API_KEYS") || !strings.Contains(said, "http://127.0.0.1:1") || strings.Contains(said, "is running") {
		t.Errorf("exit code %d, said %s", code, said)
	}
}

// TestDevLooksForItsStore: without that signaling nodes would wait for it in silence.
func TestDevLooksForItsStore(t *testing.T) {
	if code, _, said := exec(t, nil, "dev", "--redis", "redis://127.0.0.1:1"); code == exitDone || !strings.Contains(said, "no server answers there") {
		t.Errorf("exit code %d, said %s", code, said)
	}
}
