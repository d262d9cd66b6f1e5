package rest

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// devHeader protects from other pages, because a page of another origin must ask before it may send this header.
const devHeader = "X-Holdfast-Dev"

var errNotFromHere = fault.Sayf(wire.CodeNotAllowed, "Only a page of this machine may do that.")

func (a *API) mayKill() bool { return a.deps.Config.Dev && a.deps.Killer != nil }

// serveDevKill kills a media node, but not the last one.
func (a *API) serveDevKill(w http.ResponseWriter, r *http.Request) {
	if !fromHere(r) || r.Header.Get(devHeader) == "" {
		reply.Refuse(w, errNotFromHere)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	node, others := ring.NodeID(r.URL.Query().Get("node")), 0
	known := false
	for _, n := range a.deps.Views.View().Nodes {
		switch {
		case n.ID == node:
			known = true
		case !n.Draining:
			others++
		}
	}
	switch {
	case !known:
		_, err := MediaNode(a.deps.Views.View(), node)
		reply.Refuse(w, err)
		return
	case others == 0:
		reply.Refuse(w, fault.Sayf(wire.CodeNoOtherNode, "It is the last media node. Start another one first: holdfast dev start"))
		return
	}
	a.deps.Log.Info("killing a media node for a page", "node", node, "remote", r.RemoteAddr)
	if err := a.deps.Killer.Kill(r.Context(), string(node)); err != nil && !errors.Is(err, context.Canceled) {
		a.deps.Log.Error("media node not killed", "node", node, "error", err)
		reply.Refuse(w, fault.Sayf(wire.CodeInternal, "The node could not be killed."))
		return
	}
	a.ordered(r, events.Event{Kind: events.NodeKilled, Node: node})
	reply.JSON(w, http.StatusOK, struct{}{})
}

func fromHere(r *http.Request) bool {
	return loopback(r.RemoteAddr) && loopback(r.Host)
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
