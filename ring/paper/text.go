package paper

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-rtc/holdfast/ring"
)

// A line names at most this many nodes.
const maxNamed = 16

// WriteText writes the report as log lines.
func (r Report) WriteText(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "[ring] nodes=%d vnodes=%d rooms=%d\n", r.Nodes, r.VirtualNodes, r.Rooms)
	writeDistribution(&out, r.Before)
	if g := r.Growth; g != nil {
		fmt.Fprintf(&out, "[ring] node added=%s remapped=%d/%d (%.1f%%, ~%d/%d expected) unchanged=%d\n",
			names(g.Added), g.Remapped, r.Rooms, 100*g.RemapShare, len(g.Added), r.Nodes+len(g.Added), r.Rooms-g.Remapped)
		writeDistribution(&out, g.After)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func writeDistribution(out *strings.Builder, d Distribution) {
	out.WriteString("[ring] distribution")
	for _, s := range d.Shares[:min(maxNamed, len(d.Shares))] {
		fmt.Fprintf(out, " %s=%d", s.Node, s.Rooms)
	}
	if more := len(d.Shares) - maxNamed; more > 0 {
		fmt.Fprintf(out, " and %d more", more)
	}
	fmt.Fprintf(out, " (spread %.1f%%, max/mean %.2f)\n", 100*d.Spread, d.MaxOverMean)
}

// names joins the first names, and says how many more there are.
func names(nodes []ring.NodeID) string {
	var out strings.Builder
	for i, node := range nodes[:min(maxNamed, len(nodes))] {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(string(node))
	}
	if more := len(nodes) - maxNamed; more > 0 {
		fmt.Fprintf(&out, ",+%d", more)
	}
	return out.String()
}

// WriteJSON writes the report as one indented object.
func (r Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
