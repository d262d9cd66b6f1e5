package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

type moveCommand struct {
	serverFlags
	Room string `arg:"" help:"The room's name. 'rooms' lists them."`
	Node string `arg:"" optional:"" help:"The media node it goes to; by default the one where placement would put it."`
}

// Run returns once the clients are told, which then connect to the new node before they leave the old one.
func (c *moveCommand) Run(ctx context.Context, s streams) error {
	body, _ := json.Marshal(map[string]string{"node": c.Node}) // strings can be encoded
	answer, err := c.sendBody(ctx, http.MethodPost, "rooms/"+url.PathEscape(c.Room)+"/move", body)
	if err != nil || c.JSON {
		if err == nil {
			err = printJSON(s.out, answer)
		}
		return err
	}
	var moved struct {
		From  string `json:"from"`
		To    string `json:"to"`
		Epoch uint64 `json:"epoch"`
	}
	if err := json.Unmarshal(answer, &moved); err != nil {
		return fmt.Errorf("decode the answer about the move: %w", err)
	}
	_, err = fmt.Fprintf(s.out, "%s moves from %s to %s (epoch %d).\n", c.Room, moved.From, moved.To, moved.Epoch)
	return err
}
