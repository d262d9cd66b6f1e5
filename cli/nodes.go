package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/nodelist"
)

type nodesCommand struct{ serverFlags }

// Run prints a table and what is wrong, or with --json the answer.
func (c *nodesCommand) Run(ctx context.Context, s streams) error {
	if c.JSON {
		return c.show(ctx, s, http.MethodGet, "nodes")
	}
	body, err := c.send(ctx, http.MethodGet, "nodes")
	if err != nil {
		return err
	}
	var answer nodelist.Answer
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("decode the list of nodes: %w", err)
	}
	return writeNodes(s.out, &answer)
}

// percent is a share of a ceiling; "-" where there is none.
func percent(of, ceiling uint64) string {
	if ceiling == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(of)/float64(ceiling))
}

// usualVersion is the version that most of the live nodes run.
func usualVersion(nodes []nodelist.Node) string {
	counts, usual := map[string]int{}, ""
	for _, n := range nodes {
		if n.Gone() {
			continue
		}
		counts[n.Version]++
		if counts[n.Version] > counts[usual] || usual == "" {
			usual = n.Version
		}
	}
	return usual
}

func writeNodes(w io.Writer, l *nodelist.Answer) error {
	if len(l.Nodes) == 0 {
		fmt.Fprintln(w, "No node is known.")
		return nil
	}
	usual := usualVersion(l.Nodes)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tROLE\tSTATE\tBITS\tPACKETS\tROOMS\tPEOPLE\tSOCKETS\tVERSION")
	for _, n := range l.Nodes {
		rooms, people, sockets := fmt.Sprint(n.Rooms), fmt.Sprint(n.Peers), "-"
		if n.Signaling() {
			rooms, people, sockets = "-", "-", fmt.Sprint(n.Sockets)
		}
		if n.Gone() {
			rooms, people, sockets = "-", "-", "-"
		}
		version := "unknown"
		if n.Version != "" {
			version = printable(n.Version)
		}
		if l.MixedVersions && !n.Gone() && n.Version != usual {
			version += " (!)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(n.Name), printable(n.Role), n.Condition(),
			percent(n.EgressBitsPerSecond, n.CeilingBitsPerSecond), percent(n.EgressPacketsPerSecond, n.CeilingPacketsPerSecond),
			rooms, people, sockets, version)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the nodes: %w", err)
	}
	for i := range l.Nodes {
		writeRemarks(w, &l.Nodes[i])
	}
	if l.MixedVersions {
		fmt.Fprintln(w, "The nodes run different versions; (!) marks those that differ from most. Finish the upgrade, or go back.")
	}
	if !l.Settled {
		fmt.Fprintln(w, "The signaling node that answered has not seen the whole cluster yet.")
	}
	return nil
}

// writeRemarks prints what is wrong with the node, one sentence a line.
func writeRemarks(w io.Writer, n *nodelist.Node) {
	name := printable(n.Name)
	switch {
	case n.State == "dead" && n.Cause != "":
		fmt.Fprintf(w, "%s died at %s (%s).\n", name, clock(n.At), plain(n.Cause))
	case n.State == "dead":
		fmt.Fprintf(w, "%s died at %s.\n", name, clock(n.At))
	case n.State == "left":
		fmt.Fprintf(w, "%s left at %s.\n", name, clock(n.At))
	}
	if n.LimitedSeconds > 0 {
		fmt.Fprintf(w, "%s has made pictures smaller for %s, because it is near a ceiling.\n", name, time.Duration(n.LimitedSeconds)*time.Second)
	}
	if n.Stalled > 0 {
		fmt.Fprintf(w, "%s sends nothing to %s.\n", name, count(n.Stalled, "client", "clients"))
	}
	if len(n.MediaSilent) > 0 {
		fmt.Fprintf(w, "%s does not answer at %s, of which clients are told.\n", name, plain(strings.Join(n.MediaSilent, ", ")))
	}
}
