package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/ring"
)

type explainCommand struct {
	serverFlags
	Room string `arg:"" help:"The room's name."`
}

// Run prints one line a step, or with --json the answer.
func (c *explainCommand) Run(ctx context.Context, s streams) error {
	path := "rooms/" + url.PathEscape(c.Room)
	if c.JSON {
		return c.show(ctx, s, http.MethodGet, path)
	}
	body, err := c.send(ctx, http.MethodGet, path)
	if err != nil {
		return err
	}
	var answer reasons
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("decode the explanation: %w", err)
	}
	_, err = io.WriteString(s.out, answer.text(c.Room))
	return err
}

// reasons is what the operator's API says of one room.
type reasons struct {
	Explanation *orchestrator.Explanation `json:"explanation"` // nil for who may not see the cluster
	HeldBy      []struct {
		Node    string       `json:"node"`
		Peers   []roomMember `json:"peers"`
		Members []roomNode   `json:"members"`
		Changes []roomChange `json:"changes"`
		Standby *struct {
			Node        string `json:"node"`
			Connections int    `json:"connections"`
		} `json:"standby"`
	} `json:"heldBy"`
	Unreachable []string `json:"unreachable"`
}

// roomNode is a node of a room that has branches. The owner has no link.
type roomNode struct {
	Node                string  `json:"node"`
	People              int     `json:"people"`
	EgressBitsPerSecond uint64  `json:"egressBitsPerSecond"`
	Fill                float64 `json:"fill"`
	Why                 string  `json:"why"`
	Since               int64   `json:"since"` // Unix ms
	Stays               string  `json:"stays"`
	Link                *struct {
		Up   bool `json:"up"`
		Sent struct {
			Layers int `json:"layers"`
		} `json:"sent"`
	} `json:"link"`
}

// roomChange is a change of a room's nodes.
type roomChange struct {
	At     int64  `json:"at"` // Unix ms
	What   string `json:"what"`
	Node   string `json:"node"`
	To     string `json:"to"`
	People int    `json:"people"`
	Why    string `json:"why"`
}

func (c roomChange) text() string {
	what := c.What + " " + printable(c.Node)
	if c.To != "" {
		what = fmt.Sprintf("%s %s from %s to %s", c.What, count(c.People, "person", "people"), printable(c.Node), printable(c.To))
	}
	return fmt.Sprintf("    %s  %s: %s\n", clock(time.UnixMilli(c.At)), plain(what), plain(cmp.Or(c.Why, "no reason was given")))
}

func (m roomNode) text() string {
	carries := fmt.Sprintf("  %s has %s and sends %.1f Mbit/s", printable(m.Node), count(m.People, "person", "people"), float64(m.EgressBitsPerSecond)/1e6)
	if m.Fill > 0 {
		carries += fmt.Sprintf(", %.0f %% of its ceiling with all rooms", 100*m.Fill)
	}
	switch {
	case m.Link == nil:
		return carries + ": it has the pin.\n"
	case !m.Link.Up:
		carries += ", and its link is down"
	default:
		carries += ", and is sent " + count(m.Link.Sent.Layers, "layer", "layers")
	}
	since := ""
	if m.Since != 0 {
		since = " since " + clock(time.UnixMilli(m.Since))
	}
	stays := ""
	if m.Stays != "" {
		stays = "; it " + plain(m.Stays)
	}
	return fmt.Sprintf("%s: a branch%s, %s%s.\n", carries, since, plain(cmp.Or(m.Why, "no reason was given")), stays)
}

func (a reasons) text(room string) string {
	var out strings.Builder
	name := printable(room)
	for _, held := range a.HeldBy {
		fmt.Fprintf(&out, "%s is open on %s, with %s.\n", name, printable(held.Node), count(len(held.Peers), "person", "people"))
		if s := held.Standby; s != nil {
			fmt.Fprintf(&out, "  %s stands by for %s.", printable(s.Node), count(s.Connections, "connection", "connections"))
			if s.Connections >= len(held.Peers) && len(held.Members) == 0 {
				fmt.Fprintf(&out, " The room goes there when %s is silent for 0.3 s.", printable(held.Node))
			}
			out.WriteString("\n")
		}
		for _, m := range held.Members {
			out.WriteString(m.text())
		}
		if len(held.Changes) > 0 {
			out.WriteString("  Changes of its nodes\n")
		}
		for _, c := range held.Changes {
			out.WriteString(c.text())
		}
	}
	if len(a.HeldBy) == 0 {
		fmt.Fprintf(&out, "%s is open nowhere.\n", name)
	}
	if len(a.Unreachable) > 0 {
		fmt.Fprintf(&out, "No answer from %s.\n", strings.Join(a.Unreachable, ", "))
	}
	e := a.Explanation
	if e == nil {
		out.WriteString("Why it is there is told to operators only.\n")
		return out.String()
	}
	if e.Pin.IsZero() {
		fmt.Fprintf(&out, "State: %s.\n", plain(e.State))
	} else {
		fmt.Fprintf(&out, "Its pin names %s, epoch %d: %s.\n", named(e.Pin.Node), e.Pin.Fence.Epoch, plain(e.State))
	}
	a.history(&out)
	a.walk(&out)
	return out.String()
}

func (a reasons) history(out *strings.Builder) {
	e := a.Explanation
	if e.Pin.IsZero() {
		return
	}
	first := e.Pin.Node
	if len(e.History) > 0 {
		first = e.History[0].From
	}
	out.WriteString("\nHistory\n")
	fmt.Fprintf(out, "  %s  claimed on %s", clock(e.Claimed), named(first))
	if e.ClaimedWhy != "" {
		fmt.Fprintf(out, ": %s", plain(e.ClaimedWhy))
	}
	out.WriteString("\n")
	for _, c := range e.History {
		fmt.Fprintf(out, "  %s  %s -> %s: %s\n", clock(c.At), named(c.From), named(c.To), plain(cmp.Or(c.Why, "no reason was given")))
	}
	if e.Unrecorded > 0 {
		fmt.Fprintf(out, "  %s not recorded\n", count(int(min(e.Unrecorded, 1<<20)), "move was", "moves were")) //nolint:gosec // bounded here
	}
}

func (a reasons) walk(out *strings.Builder) {
	e := a.Explanation
	fmt.Fprintf(out, "\nWhere it would be placed now, by its hash %08x and then clockwise; it needs %s\n", e.Hash, rate(e.Need))
	for i, step := range e.Walk {
		sign := " "
		if step.Chosen {
			sign = "*"
		}
		reserved := ""
		if step.Reserved != (headroom.Egress{}) {
			reserved = " + " + rate(step.Reserved) + " reserved"
		}
		fmt.Fprintf(out, "%s %d. %s: %s; sends %s%s of %s; %.0f %% with the room\n", sign, i+1, named(step.Node),
			plain(step.Why), rate(step.Reported), reserved, rate(step.Ceiling), 100*step.Share)
	}
	if len(e.Walk) == 0 {
		out.WriteString("  no media node lives\n")
		return
	}
	fmt.Fprintf(out, "* is chosen. The bound is %.0f %% of a node's ceiling.\n", 100*e.Bound)
}

func named(node ring.NodeID) string {
	if node == "" {
		return "an unknown node"
	}
	return printable(string(node))
}

// plain is for sentences that came over the network.
func plain(sentence string) string {
	return strings.Map(func(r rune) rune {
		if visible(r) {
			return r
		}
		return '?'
	}, sentence)
}

func rate(e headroom.Egress) string { return fmt.Sprintf("%.1f Mbit/s", float64(e.BitsPerSecond)/1e6) }

func clock(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05.000Z") }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
