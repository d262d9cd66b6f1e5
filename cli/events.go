package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/tty"
)

type eventsCommand struct {
	serverFlags
	Since  time.Duration `default:"1h" help:"How far back to begin."`
	Room   string        `help:"Only of this room."`
	Node   string        `help:"Only of this node."`
	Kind   []string      `placeholder:"KIND" help:"Only of these kinds, such as node_down or room_rehomed."`
	Follow bool          `help:"Go on with what happens, until it is interrupted."`

	// merger joins the events of one failover, for people.
	merger events.Merger
	// live says that the past has been printed.
	live bool
}

// followEventsEvery is how soon an event is shown.
const followEventsEvery = time.Second

type eventsPage struct {
	Events []events.Event `json:"events"`
	Next   string         `json:"next"`
	More   bool           `json:"more"`
}

// Run prints one line an event, or a failover: its time on this machine, and a sentence. With --json each line is one event as JSON.
func (c *eventsCommand) Run(ctx context.Context, s streams) error {
	query := url.Values{"since": {c.Since.String()}, "kind": c.Kind}
	if c.Room != "" {
		query.Set("room", c.Room)
	}
	if c.Node != "" {
		query.Set("node", c.Node)
	}
	for {
		body, err := c.send(ctx, http.MethodGet, "events?"+query.Encode())
		switch {
		case ctx.Err() != nil: // interrupted
			return nil
		case err != nil:
			return err
		}
		var page eventsPage
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("decode events: %w", err)
		}
		if err := c.printPage(s.out, page); err != nil {
			return err
		}
		if page.Next != "" {
			query.Del("since")
			query.Set("after", page.Next)
		}
		if page.More {
			continue
		}
		if !c.Follow || !backoff.Sleep(ctx, followEventsEvery) {
			return nil
		}
	}
}

func (c *eventsCommand) printPage(out io.Writer, page eventsPage) error {
	if c.JSON {
		for _, e := range page.Events {
			line, err := json.Marshal(e)
			if err != nil {
				return fmt.Errorf("encode an event: %w", err)
			}
			if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
				return err
			}
		}
		return nil
	}
	var lines []events.Line
	for _, e := range page.Events {
		switch {
		// The reports that belong to a failover are not among the chosen events.
		case c.Node != "" || len(c.Kind) > 0:
			lines = append(lines, events.Line{At: e.At, Text: e.Sentence()})
		case c.live:
			lines = append(lines, c.merger.Add(e, time.Now())...)
		default:
			lines = append(lines, c.merger.Add(e, e.At)...)
		}
	}
	switch {
	case c.live:
		lines = append(lines, c.merger.Due(time.Now())...)
	case !page.More:
		lines, c.live = append(lines, c.merger.Flush()...), true
	}
	// A failover is told after its last event, at the time of its first.
	slices.SortStableFunc(lines, func(a, b events.Line) int { return a.At.Compare(b.At) })
	paint := tty.Paint(tty.Colors(out))
	for _, line := range lines {
		if _, err := fmt.Fprintf(out, "%s  %s\n", paint(tty.Dim, line.At.Local().Format("2006-01-02 15:04:05.000")), line.Show(paint)); err != nil {
			return err
		}
	}
	return nil
}
