package cli

import (
	"context"
	"net/http"
	"net/url"
)

type removeCommand struct {
	serverFlags
	Room     string `arg:"" help:"The room's name."`
	Identity string `arg:"" help:"The identity of the person's token; all of its connections go. 'rooms' lists them."`
}

func (c *removeCommand) Run(ctx context.Context, s streams) error {
	return c.show(ctx, s, http.MethodDelete, "peers?"+url.Values{"room": {c.Room}, "identity": {c.Identity}}.Encode())
}
