package cli

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/holdfast-rtc/holdfast/sfu"
)

// TestSIGTERMAfterAnUndrainDrains: only a second SIGTERM within one drain hurries the node.
func TestSIGTERMAfterAnUndrainDrains(t *testing.T) {
	for name, between := range map[string]func(*sfu.Node){
		"undrained":                   func(*sfu.Node) {},
		"undrained and drained again": func(n *sfu.Node) { n.StartDrain(sfu.Drain{}) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := sfu.DefaultConfig()
			cfg.Node, cfg.Boot, cfg.Loopback = "one", "1769000000000-one", true
			log := slog.New(slog.DiscardHandler)
			node, err := sfu.New(cfg, nil, log)
			if err != nil {
				t.Fatal(err)
			}
			var ended sync.WaitGroup
			ended.Go(func() { _ = node.Run(t.Context()) })
			t.Cleanup(ended.Wait)

			d, leaves := &sfuDrain{sfuNode: &sfuNode{media: node, log: log}}, 0
			leave := func() { leaves++ }
			d.terminate(leave)
			node.Undrain()
			between(node)
			d.terminate(leave)
			if now := node.DrainState(); leaves != 0 || !now.Draining || !now.Exit {
				t.Fatalf("the first SIGTERM of the second drain: %d leaves, %+v", leaves, now)
			}
			d.terminate(leave)
			if leaves != 1 {
				t.Errorf("the second SIGTERM: %d leaves, want 1", leaves)
			}
		})
	}
}
