package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/holdfast-rtc/holdfast/internal/nodelist"
)

type roomsCommand struct{ serverFlags }

// Run prints a table, or with --json the answer and everybody's media state.
func (c *roomsCommand) Run(ctx context.Context, s streams) error {
	if c.JSON {
		return c.show(ctx, s, http.MethodGet, "rooms?media")
	}
	body, err := c.send(ctx, http.MethodGet, "rooms")
	if err != nil {
		return err
	}
	var answer roomList
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("decode the list of rooms: %w", err)
	}
	return answer.write(s.out, c.ceilings(ctx))
}

// ceilings are the nodes' limits on bits per second. Who may not see the nodes gets none.
func (c *roomsCommand) ceilings(ctx context.Context) map[string]uint64 {
	of := map[string]uint64{}
	var answer nodelist.Answer
	if body, err := c.send(ctx, http.MethodGet, "nodes"); err != nil || json.Unmarshal(body, &answer) != nil {
		return of
	}
	for _, n := range answer.Nodes {
		of[n.Name] = n.CeilingBitsPerSecond
	}
	return of
}

type roomList struct {
	Rooms []struct {
		Room                string       `json:"room"`
		Node                string       `json:"node"`
		Peers               []roomMember `json:"peers"`
		EgressBitsPerSecond uint64       `json:"egressBitsPerSecond"`
		Members             []struct {
			Node                string `json:"node"`
			EgressBitsPerSecond uint64 `json:"egressBitsPerSecond"`
		} `json:"members"` // the owner and the branches
	} `json:"rooms"`
	Unreachable []string `json:"unreachable"`
}

type roomMember struct {
	Identity  string `json:"identity"`
	Attached  bool   `json:"attached"`  // has a socket
	Connected bool   `json:"connected"` // has media
}

func (l roomList) write(w io.Writer, ceilings map[string]uint64) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(l.Rooms) > 0 {
		fmt.Fprintln(table, "ROOM\tNODE\tPEOPLE\tSENT\tSHARE\tWHO")
	}
	for _, room := range l.Rooms {
		var who []string
		for _, peer := range room.Peers {
			who = append(who, peer.shown())
		}
		node, ceiling := printable(room.Node), ceilings[room.Node]
		if branches := len(room.Members) - 1; branches > 0 {
			node, ceiling = fmt.Sprintf("%s +%d", node, branches), 0
			for _, m := range room.Members {
				ceiling += ceilings[m.Node]
			}
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%.1f Mbit/s\t%s\t%s\n", printable(room.Room), node, len(room.Peers),
			float64(room.EgressBitsPerSecond)/1e6, share(room.EgressBitsPerSecond, ceiling), cmp.Or(strings.Join(who, ", "), "-"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the rooms: %w", err)
	}
	if len(l.Rooms) == 0 {
		fmt.Fprintln(w, "No room is open.")
	}
	if len(l.Unreachable) > 0 {
		fmt.Fprintf(w, "No answer from %s: rooms there are not listed.\n", strings.Join(l.Unreachable, ", "))
	}
	return nil
}

// share is percent with a decimal for small rooms.
func share(of, ceiling uint64) string {
	if ceiling == 0 || of >= ceiling/10 {
		return percent(of, ceiling)
	}
	return fmt.Sprintf("%.1f %%", 100*float64(of)/float64(ceiling))
}

func (m roomMember) shown() string {
	switch {
	case !m.Attached:
		return printable(m.Identity) + " (away)"
	case !m.Connected:
		return printable(m.Identity) + " (no media)"
	default:
		return printable(m.Identity)
	}
}

// visible reports whether a character may go to a terminal as it is. Joiners are parts of words and of emoji.
func visible(r rune) bool { return unicode.IsPrint(r) || r == '\u200c' || r == '\u200d' }

// printable makes a text that somebody else chose safe for a terminal: quoted, if anything in it does not print.
func printable(text string) string {
	odd := func(r rune) bool {
		return !visible(r) || r == '"' || r == '\\' || r == ',' || r == unicode.ReplacementChar
	}
	if text == "" || strings.ContainsFunc(text, odd) || strings.TrimSpace(text) != text {
		return strconv.Quote(text)
	}
	return text
}
