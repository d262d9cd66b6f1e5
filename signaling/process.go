package signaling

import (
	"net/http"
	"runtime"

	"github.com/holdfast-rtc/holdfast/ring"
)

// processAnswer is what this process holds: what must come back to where it was when
// a storm is over.
type processAnswer struct {
	Node       ring.NodeID `json:"node"`
	Goroutines int         `json:"goroutines"`
	HeapBytes  uint64      `json:"heapBytes"`
	Sockets    int64       `json:"sockets"`  // with a session
	Waiting    int         `json:"waiting"`  // connections without one
	SentAway   uint64      `json:"sentAway"` // connections that had to go for others, since the start
}

func (s *Server) serveProcess(w http.ResponseWriter, _ *http.Request) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	waiting, sentAway := s.lobby.Waiting()
	writeJSON(w, http.StatusOK, processAnswer{
		Node: s.config.Node, Goroutines: runtime.NumGoroutine(), HeapBytes: memory.HeapAlloc,
		Sockets: s.sockets.Load(), Waiting: waiting, SentAway: sentAway,
	})
}
