package devcluster

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// topShows runs `holdfast top` without a terminal until it has shown all of that.
func topShows(t *testing.T, c *Cluster, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	defer cancel()
	binary, err := builtOnce()
	if err != nil {
		t.Fatal(err)
	}
	top := exec.CommandContext(ctx, binary, "top", "--state", filepath.Join(c.dir.path, "state.json"))
	out, err := top.StdoutPipe()
	if err == nil {
		err = top.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	for lines := bufio.NewScanner(out); len(want) > 0 && lines.Scan(); {
		shown.WriteString(lines.Text() + "\n")
		for len(want) > 0 && strings.Contains(shown.String(), want[0]) {
			want = want[1:]
		}
	}
	cancel()
	_ = top.Wait() // it was ended
	if len(want) > 0 {
		t.Errorf("top does not show %q:\n%s", want, shown.String())
	}
}
