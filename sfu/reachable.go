package sfu

import (
	"strings"
	"sync"
	"time"

	"github.com/pion/rtp"

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
	mu sync.Mutex // guards the fields below
	// conn answers the checks, until ends; nil while nobody tries.
	conn *transport.Conn
	ends *time.Timer
	// silent has, by signaling node, the addresses that did not answer it. With "" all did.
	silent map[string]string
}

// nobody takes the packets of a connection that has no client.
type nobody struct{}

func (nobody) RTP(*rtp.Header, []byte, time.Time) {}

func (nobody) RTCP([]byte, time.Time) {}

func (nobody) Tick(time.Time) {}

func (nobody) StateChanged(transport.State) {}

func (nobody) Moved() {}

// tryable returns the credentials for checks. Signaling nodes share them, since each has proved that it knows the cluster key.
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

// tried takes the result of a signaling node's checks, and logs what changed.
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
	// Run has checked that there are some.
	told, _ := n.candidates()
	for _, at := range told {
		all = append(all, at.String())
	}
	return all
}
