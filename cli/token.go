package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/node"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// orDev falls back to a development cluster of this user: the only one, or that of the state file.
func orDev(ctx context.Context, f *node.KeyringConfig, state string) (*access.Keyring, error) {
	if f.APIKeys != "" || f.APIKeysFile != "" {
		return f.Keyring()
	}
	dev, err := findDev(ctx, state)
	if err != nil {
		return nil, fmt.Errorf("--api-keys: none given, and %w", err)
	}
	return access.ParseKeyring(dev.apiKeys())
}

type devStateFlag struct {
	State string `placeholder:"PATH" help:"The state file of the development cluster that is meant, when several run."`
}

type tokenCommand struct {
	node.KeyringConfig
	devStateFlag
	Identity        string            `required:"" help:"Who it is, stable for the application."`
	Room            string            `help:"The room it opens; any room when empty."`
	DisplayName     string            `help:"What people see; the identity by default."`
	Metadata        string            `help:"A text of the application's, which everybody in the room gets."`
	Attribute       map[string]string `placeholder:"NAME=TEXT" help:"Texts of the application's by name, likewise."`
	Admin           bool              `help:"Let it run --room (list and remove its people); without --room, the whole cluster."`
	Create          bool              `help:"Let it open rooms where the deployment demands roomCreate."`
	SubscribeOnly   bool              `help:"Do not let it publish, nor chat."`
	Source          []string          `placeholder:"SOURCE" help:"What it may publish: microphone, camera, screen_share, screen_share_audio; everything when empty."`
	Hidden          bool              `help:"The others do not see it; it neither publishes nor chats."`
	Watch           bool              `help:"Let it be told who is online in the cluster."`
	Message         bool              `help:"Let it send direct messages to anybody in the cluster; without it to people of its own room."`
	MaxParticipants int               `help:"How many people the room holds, with --room; the others wait in line. 0: no cap."`
	ExpectedSize    int               `help:"How many people the room is expected to hold, with --room; 0 leaves it to the cluster."`
	TTL             time.Duration     `name:"ttl" default:"6h" help:"How long it is good."`
}

func (c *tokenCommand) Run(ctx context.Context, s streams) error {
	keys, err := orDev(ctx, &c.KeyringConfig, c.State)
	if err != nil {
		return node.Faults(err)
	}
	if c.TTL <= 0 {
		return node.Faults(fmt.Errorf("--ttl %s: give a positive duration", c.TTL))
	}
	if c.Room != "" {
		if _, err := access.CheckRoom(c.Room); err != nil {
			return node.Faults(fmt.Errorf("--room: %w", err))
		}
	}
	if c.ExpectedSize < 0 || c.ExpectedSize > 0 && c.Room == "" {
		return node.Faults(fmt.Errorf("--expected-size %d: give a positive number, and the --room it is of", c.ExpectedSize))
	}
	if c.MaxParticipants < 0 || c.MaxParticipants > 0 && c.Room == "" {
		return node.Faults(fmt.Errorf("--max-participants %d: give a positive number, and the --room it is of", c.MaxParticipants))
	}
	grant := access.Everything(c.Identity, ring.RoomID(c.Room))
	grant.Name = c.DisplayName
	if grant.Name == "" {
		grant.Name = c.Identity
	}
	grant.Metadata, grant.Attributes = c.Metadata, c.Attribute
	grant.MaxParticipants = c.MaxParticipants
	grant.RoomAdmin, grant.RoomList, grant.RoomCreate, grant.ExpectedSize = c.Admin, c.Admin && c.Room == "", c.Create, c.ExpectedSize
	grant.ClusterAdmin = grant.RoomList
	grant.CanWatch, grant.CanMessage = c.Watch, c.Message
	grant.CanPublish = !c.SubscribeOnly && !c.Hidden
	grant.CanPublishData, grant.Hidden = grant.CanPublish, c.Hidden
	if grant.Sources, err = access.ParseSources(c.Source); err != nil {
		return node.Faults(fmt.Errorf("--source: %w", err))
	}
	token, err := keys.Mint("", grant, c.TTL)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, token)
	return nil
}
