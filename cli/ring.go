package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-rtc/holdfast/ring/paper"
)

// RingCmd is the verb "ring". It asks no cluster.
type RingCmd struct {
	Nodes  int    `default:"3" help:"Number of nodes, 1 to 1000."`
	Rooms  int    `default:"1000" help:"Number of rooms, 1 to 1000000."`
	Add    int    `default:"0" help:"Nodes to add, to see how many rooms move."`
	Prefix string `default:"sfu" help:"The nodes are PREFIX-1, PREFIX-2 and so on."`
	Format string `default:"text" enum:"text,json,svg" help:"text, json, or svg for a picture."`
	Out    string `type:"path" placeholder:"FILE" help:"Write to a file; standard output by default."`

	Stdout io.Writer `kong:"-"` // os.Stdout when nil
}

// Run computes and writes the report.
func (c *RingCmd) Run() error {
	report, err := paper.Compute(paper.Plan{Nodes: c.Nodes, Rooms: c.Rooms, Add: c.Add, Prefix: c.Prefix})
	if err != nil {
		return faults(err)
	}
	var out bytes.Buffer
	switch c.Format {
	case "json":
		err = report.WriteJSON(&out)
	case "svg":
		err = report.WriteSVG(&out)
	default:
		err = report.WriteText(&out)
	}
	if err != nil {
		return fmt.Errorf("render ring: %w", err)
	}
	if c.Out != "" {
		return os.WriteFile(c.Out, out.Bytes(), 0o644)
	}
	to := c.Stdout
	if to == nil {
		to = os.Stdout
	}
	_, err = to.Write(out.Bytes())
	return err
}
