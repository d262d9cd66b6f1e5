package cli

import (
	"bytes"
	"fmt"
	"os"

	"github.com/holdfast-rtc/holdfast/node"
	"github.com/holdfast-rtc/holdfast/ring/paper"
)

// ringCommand asks no cluster.
type ringCommand struct {
	Nodes  int    `default:"3" help:"Number of nodes, 1 to 1000."`
	Rooms  int    `default:"1000" help:"Number of rooms, 1 to 1000000."`
	Add    int    `default:"0" help:"Nodes to add, to see how many rooms move."`
	Prefix string `default:"sfu" help:"The nodes are PREFIX-1, PREFIX-2 and so on."`
	JSON   bool   `name:"json" help:"Print the result as JSON, for programs."`
	Format string `default:"text" enum:"text,svg" help:"text, or svg for a picture."`
	Out    string `type:"path" placeholder:"FILE" help:"Write to a file; standard output by default."`
}

func (c *ringCommand) Run(s streams) error {
	report, err := paper.Compute(paper.Plan{Nodes: c.Nodes, Rooms: c.Rooms, Add: c.Add, Prefix: c.Prefix})
	if err != nil {
		return node.Faults(err)
	}
	var out bytes.Buffer
	switch {
	case c.JSON:
		err = report.WriteJSON(&out)
	case c.Format == "svg":
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
	_, err = s.out.Write(out.Bytes())
	return err
}
