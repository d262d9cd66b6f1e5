package failpoint

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	list, faults := parse(" place.after-claim=exit, b=hang,,c=stop,=exit,d,e=explode")
	if want := map[string]action{"place.after-claim": exit, "b": hang, "c": stop}; !maps.Equal(list, want) {
		t.Errorf("parse = %v, want %v", list, want)
	}
	if len(faults) != 3 {
		t.Errorf("faults %q, want three", faults)
	}
	if list, faults := parse(""); list != nil || faults != nil {
		t.Errorf("parse of nothing = %v, %v", list, faults)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a=exit,b=hang")
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := parse(text)
		for name, a := range list {
			if name == "" || a != exit && a != stop && a != hang {
				t.Fatalf("parse(%q) armed %q with %q", text, name, a)
			}
		}
	})
}

// TestMain lets the test binary be the process that is hit.
func TestMain(m *testing.M) {
	if os.Getenv(Variable) != "" {
		Hit("some.other.step")
		_, _ = os.Stdout.WriteString("before\n")
		Hit("step")
		_, _ = os.Stdout.WriteString("after\n")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hit runs this binary with failpoints armed until it ends.
func hit(t *testing.T, armed string) (*exec.Cmd, *strings.Builder, *strings.Builder) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), Variable+"="+armed)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out, &errs
}

func TestExitKillsAtTheStep(t *testing.T) {
	cmd, out, errs := hit(t, "step=exit")
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the process ended with %v, want SIGKILL", err)
	}
	if out.String() != "before\n" {
		t.Errorf("it wrote %q, want to see it die at the step", out)
	}
	if errs.String() != "failpoint step: exit\n" {
		t.Errorf("it wrote %q to standard error, want the step", errs)
	}
}

func TestStopFreezesUntilContinued(t *testing.T) {
	cmd, out, _ := hit(t, "step=stop")
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("wait: %v, status %v, want stopped", err, status)
	}
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "before\nafter\n" {
		t.Errorf("after SIGCONT: %v, wrote %q", err, out)
	}
}

func TestBadEntryIsReportedNotIgnored(t *testing.T) {
	cmd, _, errs := hit(t, "step=explode")
	if err := cmd.Wait(); err != nil || !strings.Contains(errs.String(), "explode") {
		t.Errorf("%v, standard error %q, want the bad entry named", err, errs)
	}
}

func BenchmarkHitUnarmed(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Hit("place.after-claim")
	}
}
