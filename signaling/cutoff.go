package signaling

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
)

// A signaling node that hears no media node, while the rest of the cluster does, is of no use to anybody: nobody can join
// through it, and who is here cannot follow when a room moves. It says so to its balancer, refuses newcomers at
// once, and sends its clients to another signaling node, where they resume without a pause of their media. Where no other
// one is ready, they stay: what flows goes on.
const (
	// reachEvery is how often a node looks whether it is cut off.
	reachEvery = 250 * time.Millisecond
	// sentAwayAtOnce clients go in one such look, so 200 a second: the pace at which failover sends them to a node.
	sentAwayAtOnce = 50
	// askReadyLimit bounds the question to another signaling node whether it is ready.
	askReadyLimit = time.Second
)

// errCutOff ends sessions, and refuses new ones, where no media node is heard.
var errCutOff = errors.New("no media node is heard here, though the cluster says that they live: is this node cut off from their control port?")

// cutOff says whether none of the media nodes is heard here, and gossip, which asks through others too, has not given all of
// them up. Where it has, they are more likely dead, and no signaling node is better off than this one.
func cutOff(view *cluster.View) bool {
	vouchedFor := false
	for _, node := range view.Nodes {
		if node.Role != cluster.RoleSFU {
			continue
		}
		if !node.Silent {
			return false
		}
		vouchedFor = vouchedFor || !node.Doubted
	}
	return vouchedFor
}

// watchReach follows whether this node is cut off, until ctx ends.
func (s *Server) watchReach(ctx context.Context) {
	client := &http.Client{
		Timeout:   askReadyLimit,
		Transport: &http.Transport{DisableKeepAlives: true}, // a frozen process keeps an old connection open
	}
	tick := time.NewTicker(reachEvery)
	defer tick.Stop()
	var since time.Time // zero while a media node is heard
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		view := s.parts.Views.View()
		if view == nil || !cutOff(view) {
			since = time.Time{}
			if s.cut.Swap(false) {
				s.log.Info("media nodes are heard again")
			}
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < s.config.CutOffAfter {
			continue
		}
		if !s.cut.Swap(true) {
			s.log.Warn("no media node is heard here, though gossip takes them for alive: clients are sent to another signaling node")
		}
		if !s.hub.empty() && s.anotherIsReady(ctx, client, view) {
			s.log.Info("clients sent to another signaling node", "clients", s.hub.sendAway(sentAwayAtOnce))
		}
	}
}

// anotherIsReady asks the other signaling nodes, as their balancers do, and returns with the first that is.
func (s *Server) anotherIsReady(ctx context.Context, client *http.Client, view *cluster.View) bool {
	for id, node := range view.Nodes {
		if node.Role != cluster.RoleSignaling || id == s.config.Node || node.HTTP == "" {
			continue
		}
		if err := askReady(ctx, client, node.HTTP); err != nil {
			s.log.Debug("another signaling node is not ready", "node", id, "error", err)
			continue
		}
		return true
	}
	return false
}

func askReady(ctx context.Context, client *http.Client, addr string) error {
	url := "http://" + addr + readyPath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // its status was all there is to read
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

// empty says whether nobody is here.
func (h *Hub) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.rooms) == 0
}

// sendAway ends so many sessions, whole rooms where that is possible: their people shall meet at one node. Each resumes elsewhere.
func (h *Hub) sendAway(most int) (sent int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.rooms {
		for one := range r.sessions {
			if sent == most {
				return sent
			}
			one.socket.end(errCutOff)
			sent++
		}
	}
	return sent
}
