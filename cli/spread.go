package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

type spreadCommand struct {
	serverFlags
	Room string `arg:"" help:"The room's name. 'rooms' lists them."`
	Node string `arg:"" optional:"" help:"The media node that is to carry some of its people; by default the room's owner chooses."`
}

// Run returns once the owner has decided.
func (c *spreadCommand) Run(ctx context.Context, s streams) error {
	return c.order(ctx, s, c.Room, "spread", c.Node)
}

type gatherCommand struct {
	serverFlags
	Room string `arg:"" help:"The room's name. 'rooms' lists them."`
	Node string `arg:"" optional:"" help:"The media node that is to carry its people no longer; by default all but the room's owner."`
}

// Run returns once the owner has decided; people move after that.
func (c *gatherCommand) Run(ctx context.Context, s streams) error {
	return c.order(ctx, s, c.Room, "gather", c.Node)
}

func (f *serverFlags) order(ctx context.Context, s streams, room, verb, node string) error {
	body, _ := json.Marshal(map[string]string{"node": node}) // strings can be encoded
	answer, err := f.sendBody(ctx, http.MethodPost, "rooms/"+url.PathEscape(room)+"/"+verb, body)
	if err != nil || f.JSON {
		if err == nil {
			err = printJSON(s.out, answer)
		}
		return err
	}
	var now struct {
		Owner string `json:"owner"`
	}
	if err := json.Unmarshal(answer, &now); err != nil {
		return fmt.Errorf("decode the answer about the room's nodes: %w", err)
	}
	does := "has another node carry some of its people"
	if verb == "gather" {
		does = "takes its people back"
	}
	_, err = fmt.Fprintf(s.out, "%s: its owner %s %s. 'explain' shows where they are.\n", printable(room), printable(now.Owner), does)
	return err
}
