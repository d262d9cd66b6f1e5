package storetest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var errStillThere = errors.New("somebody listens there")

// TestServersDieWithTheTest kills a test process that has servers of every kind: none may be left.
func TestServersDieWithTheTest(t *testing.T) {
	if os.Getenv("STORETEST_DOOMED") != "" {
		one := Start(t, "redis")
		fleet := StartAlone(t)
		fleet.Processes[0].Kill(t)
		fleet.Processes[0].Restart(t)
		address, _, _ := strings.Cut(strings.TrimPrefix(one.URL, "redis://"), "?")
		_, _ = os.Stdout.WriteString("\nservers " + address + " " + fleet.Processes[0].Address + "\n")
		<-t.Context().Done() // The other process kills this one.
		return
	}
	Start(t, "redis")                                                                  // Skipped, or failed, where there is no redis-server.
	doomed := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$") //nolint:gosec // this very binary
	doomed.Env = append(os.Environ(), "STORETEST_DOOMED=yes")
	out, err := doomed.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := doomed.Start(); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for lines := bufio.NewScanner(out); addresses == nil && lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "servers "); ok {
			addresses = strings.Fields(rest)
		}
	}
	if err := doomed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = doomed.Wait() // It was killed, and says so.
	if len(addresses) != 2 {
		t.Fatalf("it had servers at %v, want two", addresses)
	}
	for _, at := range addresses {
		wait(t, "the server at "+at+" to be gone", func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
			if err != nil {
				return nil
			}
			_ = conn.Close()
			return errStillThere
		})
	}
}
