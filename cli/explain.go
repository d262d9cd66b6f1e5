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
		Node  string       `json:"node"`
		Peers []roomMember `json:"peers"`
	} `json:"heldBy"`
	Unreachable []string `json:"unreachable"`
}

func (a reasons) text(room string) string {
	var out strings.Builder
	name := printable(room)
	for _, held := range a.HeldBy {
		fmt.Fprintf(&out, "%s is open on %s, with %s.\n", name, printable(held.Node), count(len(held.Peers), "person", "people"))
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
