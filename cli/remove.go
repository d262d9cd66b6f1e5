package cli

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/holdfast-rtc/holdfast/node"
)

type removeCommand struct {
	serverFlags
	Room     string `arg:"" help:"The room's name."`
	Identity string `arg:"" optional:"" help:"The identity of the person's token; all of its connections go. 'rooms' lists them."`
	All      bool   `help:"End the call for everybody in the room. A later join begins another one."`
}

func (c *removeCommand) Run(ctx context.Context, s streams) error {
	if c.All == (c.Identity != "") {
		return node.Faults(errors.New("name an identity, or --all for everybody in the room"))
	}
	if c.All {
		return c.show(ctx, s, http.MethodDelete, "rooms/"+url.PathEscape(c.Room))
	}
	return c.show(ctx, s, http.MethodDelete, "peers?"+url.Values{"room": {c.Room}, "identity": {c.Identity}}.Encode())
}
