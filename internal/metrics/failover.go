package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The evidence of a death.
const (
	// EvidenceProof is what this node saw: a broken stream and refused ports, or a newer process.
	EvidenceProof = "proof"
	// EvidenceGossip is a death that gossip reported and that this node confirmed by its own silence.
	EvidenceGossip = "gossip"
	// EvidenceTold is a death that another signaling node told of, or that a newer process of that name showed.
	EvidenceTold = "told"
)

// deadFor is how long a dead node that does not come back is counted as dead.
const deadFor = time.Hour

// Failover counts deaths and what follows.
type Failover struct {
	deaths   *prometheus.CounterVec
	detected *prometheus.HistogramVec
	rehomed  *prometheus.HistogramVec
	delays   *prometheus.CounterVec

	mu   sync.Mutex
	dead map[string]death // by node, guarded by mu
}

type death struct {
	role string
	at   time.Time
}

// NewFailover registers the metrics. Active counts the moves under way.
func (r *Registry) NewFailover(active func() int) *Failover {
	if r == nil {
		return nil
	}
	f := &Failover{
		deaths:   counted(r.counterVec("node_deaths_total", "Deaths of nodes that this signaling node learned of, by its evidence.", "evidence"), EvidenceProof, EvidenceGossip, EvidenceTold),
		detected: observed(r.histogramVec("node_detection_seconds", "Time from a media node's last sign of life here to its death being known here, by evidence.", "evidence"), EvidenceProof, EvidenceGossip),
		rehomed:  r.histogramVec("rehoming_seconds", "Time from a death being known here to the clients of one room being told of the room's new node."),
		delays:   r.counterVec("rehoming_delays_total", "Tries to re-home a room that failed and were repeated."),
		dead:     map[string]death{},
	}
	f.delays.WithLabelValues()
	Read(r, func() map[string]float64 { return f.stillDead(time.Now()) }, Reading[map[string]float64]{
		Name: "nodes_dead", Help: "Nodes that died within the last hour and are not back, by role.", Label: "role", Values: func(s map[string]float64) map[string]float64 { return s },
	})
	Read(r, active, Reading[int]{Name: "rehomings_active", Help: "Rooms that this signaling node re-homes or moves now.", Value: func(n int) float64 { return float64(n) }})
	return f
}

// Died counts a death once for each boot; told by the caller's view.
func (f *Failover) Died(node, role, evidence string) {
	if f == nil {
		return
	}
	f.deaths.WithLabelValues(evidence).Inc()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead[node] = death{role, time.Now()}
}

// Gone forgets a death, because the node is back or has said goodbye since.
func (f *Failover) Gone(node string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.dead, node)
}

// Detected is how long a media node had been silent when its death became known.
func (f *Failover) Detected(evidence string, silence time.Duration) {
	if f != nil {
		f.detected.WithLabelValues(evidence).Observe(silence.Seconds())
	}
}

// Rehomed is how long one room took.
func (f *Failover) Rehomed(took time.Duration) {
	if f != nil {
		f.rehomed.WithLabelValues().Observe(took.Seconds())
	}
}

// Delayed counts a try that is repeated.
func (f *Failover) Delayed() {
	if f != nil {
		f.delays.WithLabelValues().Inc()
	}
}

// stillDead counts the dead nodes by role, and forgets those that are gone for good.
func (f *Failover) stillDead(now time.Time) map[string]float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	count := map[string]float64{"sfu": 0, "signaling": 0}
	for node, d := range f.dead {
		if now.Sub(d.at) >= deadFor {
			delete(f.dead, node)
			continue
		}
		count[d.role]++
	}
	return count
}
