package devcluster

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// A node that begins anew within its process listens at other ports, and reports them.
func TestLaterReportsAreRead(t *testing.T) {
	sp := newSpawner()
	ctx, cancel := context.WithCancel(t.Context())
	go sp.run(ctx)
	t.Cleanup(func() { cancel(); <-sp.done })
	later := make(chan child.Report, 1)
	p, err := launch(t.Context(), sp, command{
		binary: "/bin/sh", stderr: io.Discard,
		args:  []string{"-c", `echo '{"addresses":{"control":"127.0.0.1:1"}}'; echo noise; echo '{"addresses":{"control":"127.0.0.1:2"}}'; cat`},
		later: func(r child.Report) { later <- r },
	}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.report.Addresses[child.AddressControl]; got != "127.0.0.1:1" {
		t.Errorf("first at %q", got)
	}
	testkit.Eventually(t, "the later report is read", func() bool {
		select {
		case r := <-later:
			return r.Addresses[child.AddressControl] == "127.0.0.1:2"
		default:
			return false
		}
	})
	_ = p.pipe.Close()
	<-p.ended
}
