package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// lossSaid is logged at the start by a node that loses gossip on purpose.
const lossSaid = "gossip datagrams are thrown away on purpose"

// Entry is one line of a node's log.
type Entry struct {
	Time time.Time `json:"time"`
	Msg  string    `json:"msg"`
	Node string    `json:"node"`
	Room string    `json:"room"`
	By   string    `json:"-"` // the logging node
}

func (c *Chaos) logs(ctx context.Context) ([]Entry, error) {
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the nodes: %w", err)
	}
	dir, err := c.cluster.LogDir(ctx)
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, n := range status.Nodes {
		if n.Role != devcluster.RoleSignaling && n.Role != devcluster.RoleSFU {
			continue
		}
		file, err := os.Open(filepath.Join(dir, n.Name+".log"))
		if err != nil {
			return all, fmt.Errorf("read the log of %s: %w", n.Name, err)
		}
		all = append(all, parseLog(file, n.Name)...)
		file.Close()
	}
	return all, nil
}

// parseLog keeps what verdicts and phases need.
func parseLog(text io.Reader, by string) []Entry {
	var all []Entry
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e := Entry{By: by}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch e.Msg {
		case "node down", "room re-homing", "room re-homed", "member suspect", "member dead", lossSaid:
			all = append(all, e)
		}
	}
	return all
}
