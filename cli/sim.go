//go:build !node

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/sim"
	"github.com/holdfast-rtc/holdfast/node"
)

// simCommand asks no cluster.
type simCommand struct {
	Scenario string `arg:"" type:"existingfile" help:"Scenario file; lab/sim/testdata has some, and says how to write one."`
	Seed     uint64 `default:"1" help:"The same seed gives the same rooms."`
	SVG      string `name:"svg" type:"path" placeholder:"FILE" help:"Also draw how even the load is over time."`
	JSON     bool   `name:"json" help:"Print the report as JSON, for programs."`
}

func (c *simCommand) Run(ctx context.Context, s streams) error {
	file, err := os.Open(c.Scenario)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	scenario, err := sim.Read(strings.TrimSuffix(filepath.Base(c.Scenario), ".txt"), file)
	if err != nil {
		return node.Faults(err)
	}
	said := time.Now()
	report, err := sim.Run(ctx, scenario, c.Seed, func(policy string, at, end time.Duration) {
		if time.Since(said) >= time.Second {
			said = time.Now()
			fmt.Fprintf(s.err, "%s: %s of %s\n", policy, at, end)
		}
	})
	if err != nil {
		return err
	}
	if c.SVG != "" {
		if err := drawTo(c.SVG, report); err != nil {
			return err
		}
	}
	if c.JSON {
		return encodeJSON(s.out, report)
	}
	return report.WriteText(s.out, true)
}

func drawTo(name string, report sim.Report) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := report.WriteSVG(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
