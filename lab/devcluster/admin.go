package devcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// AdminNode is a node as a signaling node sees it (GET /api/v1/nodes).
type AdminNode struct {
	Node    string `json:"node"`
	Boot    string `json:"boot"`
	Role    string `json:"role"`
	State   string `json:"state"` // up, dead or left
	Control string `json:"control"`
	Stalled int    `json:"stalled"` // that signaling node's clients who receive nothing
	Sockets int    `json:"sockets"` // of that signaling node
	// Of the control port; 0: unknown.
	Protocol uint32 `json:"protocol"`
	// How long video has been held back; 0: it is not.
	LimitedSeconds uint32 `json:"limitedSeconds"`
	// As clients are told, and those that do not answer that signaling node.
	MediaTold   []string `json:"mediaTold"`
	MediaSilent []string `json:"mediaSilent"`
	AdminLoad
}

// AdminLoad is what a media node sends and has reserved, and its ceilings.
type AdminLoad struct {
	EgressBitsPerSecond     uint64 `json:"egressBitsPerSecond"`
	EgressPacketsPerSecond  uint64 `json:"egressPacketsPerSecond"`
	CeilingBitsPerSecond    uint64 `json:"ceilingBitsPerSecond"`
	CeilingPacketsPerSecond uint64 `json:"ceilingPacketsPerSecond"`
}

// Admin fetches an operator's path ("nodes", "rooms/NAME") through the front and decodes the answer.
func (c *Cluster) Admin(ctx context.Context, path string, into any) error {
	return c.AdminAt(ctx, c.page, path, into)
}

// AdminAt asks the signaling node at base, "http://host:port/".
func (c *Client) AdminAt(ctx context.Context, base, path string, into any) error {
	token, err := c.Access().adminToken()
	if err != nil {
		return err
	}
	body, err := get(ctx, c.http, strings.TrimSuffix(base, "/")+"/api/v1/"+path, token)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}

// AdminNodes lists the nodes that a signaling node sees.
func (c *Cluster) AdminNodes(ctx context.Context) ([]AdminNode, error) { return c.NodesAt(ctx, c.page) }

// NodesAt asks one signaling node for the nodes that are up.
func (c *Client) NodesAt(ctx context.Context, base string) ([]AdminNode, error) {
	var answer struct {
		Nodes []AdminNode `json:"nodes"`
	}
	err := c.AdminAt(ctx, base, "nodes", &answer)
	up := slices.DeleteFunc(answer.Nodes, func(n AdminNode) bool { return n.State == "dead" || n.State == "left" })
	return up, err
}

// DrainAt starts (POST) or ends (DELETE) a drain. The drained node does not exit.
func (c *Client) DrainAt(ctx context.Context, base, method, node string) error {
	token, err := c.Access().adminToken()
	if err != nil {
		return err
	}
	var body any
	if method == http.MethodPost {
		body = map[string]bool{"keep": true}
	}
	_, err = fetch(ctx, c.http, method, strings.TrimSuffix(base, "/")+"/api/v1/nodes/"+url.PathEscape(node)+"/drain", token, body)
	return err
}

// AdminRoom is a room as its media node describes it (GET /api/v1/rooms).
type AdminRoom struct {
	Room                string      `json:"room"`
	Node                string      `json:"node"`
	Epoch               uint64      `json:"epoch"`
	PacketsForwarded    uint64      `json:"packetsForwarded"`
	PacketsDropped      uint64      `json:"packetsDropped"`
	PacketsLate         uint64      `json:"packetsLate"`
	EgressBitsPerSecond uint64      `json:"egressBitsPerSecond"` // measured
	Peers               []AdminPeer `json:"peers"`
	// Of a room with branches; the owner is first.
	Members []AdminMember `json:"members"`
	Standby AdminStandby  `json:"standby"` // zero: there is none
}

// AdminStandby can go on with so many of a room's connections.
type AdminStandby struct {
	Node        string `json:"node"`
	Connections int    `json:"connections"`
}

// AdminMember is a node that carries some of a room's people.
type AdminMember struct {
	Node   string     `json:"node"`
	People uint32     `json:"people"`
	Link   *AdminLink `json:"link"` // nil: the owner
}

// AdminLink joins a branch to the owner of its room.
type AdminLink struct {
	Up       bool             `json:"up"`
	Sent     AdminLinkFigures `json:"sent"` // by the owner
	Received AdminLinkFigures `json:"received"`
}

// AdminLinkFigures are of one direction. Packets count since the link began.
type AdminLinkFigures struct {
	Packets uint64 `json:"packets"`
	Layers  uint32 `json:"layers"` // that cross now
}

// AdminPeer is a peer of an AdminRoom.
type AdminPeer struct {
	Peer      string `json:"peer"`
	Identity  string `json:"identity"`
	Node      string `json:"node"` // a branch; empty: the owner
	Attached  bool   `json:"attached"`
	Connected bool   `json:"connected"`
	Offers    uint64 `json:"offers"`
}

// Lost counts the dropped packets that a lack of CPU time does not explain.
func (r AdminRoom) Lost() uint64 { return r.PacketsDropped - r.PacketsLate }

// Offers counts by peer.
func (r AdminRoom) Offers() map[string]uint64 {
	count := make(map[string]uint64, len(r.Peers))
	for _, p := range r.Peers {
		count[p.Peer] = p.Offers
	}
	return count
}

// ErrSilentNode is returned when a media node did not say what it holds.
var ErrSilentNode = errors.New("a media node did not say what it holds")

// RoomsAt lists the rooms of all live media nodes; with ErrSilentNode, of the others.
func (c *Client) RoomsAt(ctx context.Context, base string) ([]AdminRoom, error) {
	var answer struct {
		Rooms       []AdminRoom `json:"rooms"`
		Unreachable []string    `json:"unreachable"`
	}
	err := c.AdminAt(ctx, base, "rooms", &answer)
	if len(answer.Unreachable) > 0 {
		err = fmt.Errorf("%w: %v", ErrSilentNode, answer.Unreachable)
	}
	return answer.Rooms, err
}

// MoveRoom moves a room to a node.
func (c *Cluster) MoveRoom(ctx context.Context, room, node string) error {
	return c.MoveRoomAt(ctx, c.page, room, node)
}

// MoveRoomAt asks one signaling node.
func (c *Client) MoveRoomAt(ctx context.Context, base, room, node string) error {
	token, err := c.Access().adminToken()
	if err != nil {
		return err
	}
	address := strings.TrimSuffix(base, "/") + "/api/v1/rooms/" + url.PathEscape(room) + "/move"
	_, err = fetch(ctx, c.http, http.MethodPost, address, token, map[string]string{"node": node})
	return err
}

// SpreadRoomAt has one more media node carry some of a room's people.
func (c *Client) SpreadRoomAt(ctx context.Context, base, room string) error {
	token, err := c.Access().adminToken()
	if err != nil {
		return err
	}
	address := strings.TrimSuffix(base, "/") + "/api/v1/rooms/" + url.PathEscape(room) + "/spread"
	_, err = fetch(ctx, c.http, http.MethodPost, address, token, map[string]string{})
	return err
}
