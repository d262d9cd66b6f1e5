package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/node"
)

type removeCommand struct {
	serverFlags
	Room     string `arg:"" help:"The room's name."`
	Identity string `arg:"" optional:"" help:"The identity of the person's token; all of its connections go. 'rooms' lists them."`
	All      bool   `help:"End the call for everybody in the room. A later join begins another one."`
}

// Run prints whose connections went, or with --json the answer.
func (c *removeCommand) Run(ctx context.Context, s streams) error {
	if c.All == (c.Identity != "") {
		return node.Faults(errors.New("name an identity, or --all for everybody in the room"))
	}
	path := "peers?" + url.Values{"room": {c.Room}, "identity": {c.Identity}}.Encode()
	whom := printable(c.Identity) + " was"
	if c.All {
		path, whom = "rooms/"+url.PathEscape(c.Room), "Everybody was"
	}
	if c.JSON {
		return c.show(ctx, s, http.MethodDelete, path)
	}
	body, err := c.send(ctx, http.MethodDelete, path)
	if err != nil {
		return err
	}
	var answer removal
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("decode the answer about the removal: %w", err)
	}
	answer.write(s.out, whom, c.Room)
	return nil
}

type removal struct {
	Removed []struct {
		Node string `json:"node"`
	} `json:"removed"`
	Unreachable []string `json:"unreachable"`
	Recorded    bool     `json:"recorded"`
}

func (r removal) write(w io.Writer, whom, room string) {
	var nodes []string
	for _, peer := range r.Removed {
		nodes = append(nodes, printable(peer.Node))
	}
	slices.Sort(nodes)
	where := ""
	if len(nodes) > 0 {
		where = " on " + strings.Join(slices.Compact(nodes), ", ")
	}
	fmt.Fprintf(w, "%s removed from %s: %s%s ended.\n", whom, printable(room), count(len(r.Removed), "connection", "connections"), where)
	if len(r.Unreachable) > 0 {
		fmt.Fprintf(w, "No answer from %s: connections there were not ended.\n", plain(strings.Join(r.Unreachable, ", ")))
	}
	if !r.Recorded {
		fmt.Fprintln(w, "The store does not have the removal yet; the signaling node keeps trying, and until then a client may resume.")
	}
}
