package tool

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// verdict is a testing.TB that remembers how a test would have ended.
type verdict struct {
	testing.TB

	ended string
}

func (v *verdict) Helper() {}

func (v *verdict) Fatalf(string, ...any) {
	v.ended = "failed"
	runtime.Goexit()
}

func (v *verdict) Skipf(string, ...any) {
	v.ended = "skipped"
	runtime.Goexit()
}

// find says how a test that needs command ends.
func find(t *testing.T, command string) string {
	t.Helper()
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if path := Find(v, command); path != "" {
			v.ended = "found"
		}
	}()
	<-done
	return v.ended
}

func TestFindKnowsTheListAndNothingElse(t *testing.T) {
	if _, err := os.Stat("/usr/bin/env"); err != nil {
		t.Fatal(err)
	}
	if got := find(t, "env"); got != "failed" {
		t.Errorf("a test that needs a command that is installed and not listed %s, want failed", got)
	}
	t.Setenv("PATH", t.TempDir())
	for ci, want := range map[string]string{"": "skipped", "true": "failed"} {
		t.Setenv("CI", ci)
		if got := find(t, "redis-server"); got != want {
			t.Errorf("with CI=%q a test without redis-server %s, want %s", ci, got, want)
		}
	}
	if err := os.WriteFile(os.Getenv("PATH")+"/cc", nil, 0o700); err != nil { //nolint:gosec // a program must be executable
		t.Fatal(err)
	}
	if got := find(t, "gcc"); got != "found" {
		t.Errorf("with cc in place of gcc it is %s, want found", got)
	}
}

func TestEveryLineOfTheListIsWhole(t *testing.T) {
	lines := 0
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		lines++
		commands, packages, use := listed(strings.Fields(line)[0])
		if len(commands) == 0 || packages == "" || use == "" {
			t.Errorf("%q is not 'commands | packages | use'", line)
		}
	}
	if lines == 0 {
		t.Error("the list is empty")
	}
}
