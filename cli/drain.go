package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/node"
)

const (
	followEvery = 300 * time.Millisecond
	// followPatience bounds missing answers: the signaling node asked may be the next to restart.
	followPatience = 15 * time.Second
	// An overdue drain without progress for so long cannot finish.
	stuckAfter = 15 * time.Second
)

// drainCommand exits 0 when the node is empty, and 1 when the drain cannot finish or was undone, when the node died, or when it no longer
// follows the drain, which then goes on.
type drainCommand struct {
	serverFlags
	Node     string        `arg:"" help:"The media node's name. 'nodes' lists them."`
	Deadline time.Duration `placeholder:"TIME" help:"How long rooms may take to move without a gap; then they move by restarts. The node's --drain-timeout by default."`
	Keep     bool          `help:"Keep the empty node's process, draining, until 'undrain'; else it ends by itself, and a container that is always restarted comes back."`
}

type drainStatus struct {
	Node     string `json:"node"`
	Boot     string `json:"boot"`
	Draining bool   `json:"draining"`
	Overdue  bool   `json:"overdue"`
	Rooms    int    `json:"rooms"`
	Peers    int    `json:"peers"`
	Gone     string `json:"gone"`
	Staying  []struct {
		Room   string `json:"room"`
		Reason string `json:"reason"`
	} `json:"staying"`
	Unreachable []string `json:"unreachable"` // they did not say which rooms stay
}

func (c *drainCommand) Run(ctx context.Context, s streams) error {
	if c.Deadline < 0 || c.Deadline > 24*time.Hour {
		return node.Faults(fmt.Errorf("--deadline: %v is not between 0s and 24h", c.Deadline))
	}
	body, _ := json.Marshal(map[string]any{"deadlineMs": c.Deadline.Milliseconds(), "keep": c.Keep}) // never fails
	first, err := c.ask(ctx, http.MethodPost, c.Node, "", body)
	if err != nil {
		return err
	}
	f := &drainFollower{
		command: c, began: time.Now(), first: first, last: first, moved: time.Now(),
		progress: progress{out: s.err, terminal: isTerminal(s.err)},
	}
	sentence, err := f.follow(ctx)
	f.progress.end()
	if err != nil {
		return err
	}
	if c.JSON {
		return encodeJSON(s.out, map[string]any{
			"node": c.Node, "rooms": first.Rooms, "peers": first.Peers, "tookMs": time.Since(f.began).Milliseconds(), "ended": !c.Keep,
		})
	}
	fmt.Fprintln(s.out, sentence)
	return nil
}

// ask sends a request about the drain of a node.
func (f *serverFlags) ask(ctx context.Context, method, node, boot string, body []byte) (drainStatus, error) {
	path := "nodes/" + url.PathEscape(node) + "/drain"
	if boot != "" {
		path += "?" + url.Values{"boot": {boot}}.Encode()
	}
	var status drainStatus
	answer, err := f.sendBody(ctx, method, path, body)
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(answer, &status); err != nil {
		return status, fmt.Errorf("decode the answer about the drain: %w", err)
	}
	return status, nil
}

type drainFollower struct {
	command     *drainCommand
	progress    progress
	began       time.Time
	first, last drainStatus
	moved       time.Time // of the last progress
	seen        bool      // by gossip, which is later than the node's own answer
}

// follow returns the sentence about an empty node.
func (f *drainFollower) follow(ctx context.Context) (string, error) {
	c, heard := f.command, time.Now()
	for {
		f.progress.show(fmt.Sprint(f.last.Rooms, f.last.Peers, f.last.Overdue, len(f.last.Staying)), f.last.line(c.Node))
		if f.last.Rooms == 0 && c.Keep {
			return fmt.Sprintf("%s is empty: %s moved in %s. It stays, draining: '%s undrain %s' lets it take rooms again.",
				c.Node, f.moves(), f.took(), invocation.Name(), c.Node), nil
		}
		if f.last.Overdue && len(f.last.Staying) > 0 && time.Since(f.moved) > stuckAfter {
			return "", fmt.Errorf("the drain of %s cannot finish: %s. Nobody was hurt, and it goes on: start another media node, or '%s undrain %s'",
				c.Node, f.last.left(), invocation.Name(), c.Node)
		}
		if !backoff.Sleep(ctx, followEvery) {
			return "", fmt.Errorf("no longer followed; the drain of %s goes on (%s). Undo it with '%s undrain %s'", c.Node, f.last.left(), invocation.Name(), c.Node)
		}
		now, err := c.ask(ctx, http.MethodGet, c.Node, f.first.Boot, nil)
		switch refused, ok := errors.AsType[*answerError](err); {
		case err == nil:
			heard = time.Now()
		case ok && refused.status == http.StatusNotFound:
			now = drainStatus{Boot: f.first.Boot, Gone: "unknown"}
		case ctx.Err() != nil || time.Since(heard) < followPatience:
			continue
		default:
			return "", fmt.Errorf("no answer for %v about the drain of %s, which goes on: %w", followPatience, c.Node, err)
		}
		if done, err := f.judge(now); err != nil || done {
			return fmt.Sprintf("%s is empty and has ended: %s moved in %s. If something starts it again, as a container's restart policy does, it takes rooms; with --keep it stays empty.",
				c.Node, f.moves(), f.took()), err
		}
	}
}

// judge takes a status and reports whether the process has ended.
func (f *drainFollower) judge(now drainStatus) (ended bool, err error) {
	node := f.command.Node
	switch {
	case now.Gone == "left", now.Gone != "" && f.last.Rooms == 0:
		return true, nil
	case now.Gone != "", now.Boot != f.first.Boot:
		return false, fmt.Errorf("%s ended before it was empty (%s): its rooms were moved by restarts", node, f.last.left())
	case !now.Draining && (f.seen || time.Since(f.began) > followPatience):
		return false, fmt.Errorf("the drain of %s was undone: it takes rooms again (%s)", node, now.left())
	}
	f.seen = f.seen || now.Draining
	if now.Rooms != f.last.Rooms || now.Peers != f.last.Peers {
		f.moved = time.Now()
	}
	f.last = now
	return false, nil
}

func (f *drainFollower) moves() string {
	return roomsWithPeople(f.first.Rooms, f.first.Peers)
}

func (f *drainFollower) took() string {
	return time.Since(f.began).Round(100 * time.Millisecond).String()
}

func roomsWithPeople(rooms, people int) string {
	text := fmt.Sprintf("%d rooms", rooms)
	if rooms == 1 {
		text = "1 room"
	}
	if people == 1 {
		return text + " with 1 person"
	}
	return text + fmt.Sprintf(" with %d people", people)
}

func (s *drainStatus) left() string {
	text := roomsWithPeople(s.Rooms, s.Peers) + " left"
	for i, stays := range s.Staying {
		if i == 3 {
			return text + fmt.Sprintf(", and %d more", len(s.Staying)-i)
		}
		text += fmt.Sprintf("; %s stays: %s", printable(stays.Room), strings.TrimSuffix(stays.Reason, "."))
	}
	if s.Overdue && len(s.Unreachable) > 0 {
		text += fmt.Sprintf("; %s did not say which rooms stay", printable(strings.Join(s.Unreachable, ", ")))
	}
	return text
}

func (s *drainStatus) line(node string) string {
	text := node + ": " + s.left()
	if s.Overdue && s.Rooms > 0 {
		text += " (past the deadline: by restarts)"
	}
	return text
}

// progress rewrites one line on a terminal, else prints a line for each change of state.
type progress struct {
	out          io.Writer
	terminal     bool
	state, shown string
}

func (p *progress) show(state, line string) {
	switch {
	case p.terminal && line != p.shown:
		fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	case !p.terminal && state != p.state:
		fmt.Fprintln(p.out, line)
	}
	p.state, p.shown = state, line
}

func (p *progress) end() {
	if p.terminal && p.shown != "" {
		fmt.Fprintln(p.out)
	}
}

type undrainCommand struct {
	serverFlags
	Node string `arg:"" help:"The media node's name."`
}

func (c *undrainCommand) Run(ctx context.Context, s streams) error {
	status, err := c.ask(ctx, http.MethodDelete, c.Node, "", nil)
	if err != nil {
		return err
	}
	if c.JSON {
		return encodeJSON(s.out, status)
	}
	fmt.Fprintf(s.out, "%s takes rooms again; it has %s.\n", c.Node, roomsWithPeople(status.Rooms, status.Peers))
	return nil
}
