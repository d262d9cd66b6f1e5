package sfu

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pion/rtp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

const (
	// A signaling node tries for four seconds.
	tryFor         = 30 * time.Second
	maxReachers    = 1024
	maxReachSilent = 16
)

// reachable lets signaling nodes check by ICE whether clients reach the media socket. Nobody else is answered.
type reachable struct {
	mu     sync.Mutex      // guards the fields below
	conn   *transport.Conn // nil while nobody tries
	ends   *time.Timer
	silent map[string]string // by signaling node, what did not answer; "": nothing
}

type nobody struct{}

func (nobody) RTP(*rtp.Header, []byte, time.Time) {}
func (nobody) RTCP([]byte, time.Time)             {}
func (nobody) Tick(time.Time)                     {}
func (nobody) StateChanged(transport.State)       {}
func (nobody) Moved()                             {}

// Reach gives credentials for checks, or takes their result.
func (s *service) Reach(_ context.Context, request *control.ReachRequest) (*control.ReachReply, error) {
	n := s.node
	silent := request.GetSilent()
	if name := request.GetSignaling(); name == "" || len(name) > maxNameBytes || len(silent) > maxReachSilent ||
		slices.ContainsFunc(silent, func(at string) bool { return len(at) > maxNameBytes }) {
		return nil, status.Error(codes.InvalidArgument, "the request names no signaling node, or too much")
	}
	if request.GetTried() {
		n.tried(request.GetSignaling(), strings.Join(silent, ", "))
		return &control.ReachReply{Boot: string(n.cfg.Boot)}, nil
	}
	credentials, err := n.tryable()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &control.ReachReply{Boot: string(n.cfg.Boot), Media: n.mediaSockets(), Ufrag: credentials.Ufrag, Password: credentials.Password}, nil
}

// Signaling nodes share credentials: each proved the cluster key.
func (n *Node) tryable() (transport.Credentials, error) {
	r := &n.reachable
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil && r.ends.Stop() {
		r.ends.Reset(tryFor)
		return r.conn.Credentials(), nil
	}
	conn, err := n.transport.Open(transport.Config{Handler: nobody{}, Owner: "signaling nodes", Ufrag: "try", Password: "try", Log: n.log})
	if err != nil {
		return transport.Credentials{}, err
	}
	r.conn, r.ends = conn, time.AfterFunc(tryFor, func() {
		r.mu.Lock()
		if r.conn == conn {
			r.conn = nil
		}
		r.mu.Unlock()
		conn.Close()
	})
	return conn.Credentials(), nil
}

func (n *Node) tried(signaling, silent string) {
	r := &n.reachable
	r.mu.Lock()
	before, known := r.silent[signaling]
	first := len(r.silent) == 0
	if r.silent == nil || len(r.silent) >= maxReachers && !known {
		r.silent = map[string]string{}
	}
	r.silent[signaling] = silent
	r.mu.Unlock()
	log := n.log.With("signaling", signaling, "told", strings.Join(n.mediaSockets(), ", "))
	switch {
	case silent != "" && silent != before:
		log.Warn("clients are told media addresses of this node at which it does not answer a signaling node: are --media-advertise, the NAT and the firewall right?", "silent", silent)
	case silent == "" && before != "":
		log.Info("all media addresses that clients are told answer a signaling node again", "before", before)
	case silent == "" && first:
		log.Info("all media addresses that clients are told answer a signaling node")
	}
}

func (n *Node) mediaSockets() (all []string) {
	told, _ := n.candidates() // Run has looked
	for _, at := range told {
		all = append(all, at.String())
	}
	return all
}
