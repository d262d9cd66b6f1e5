package webhook

import "github.com/holdfast-rtc/holdfast/internal/metrics"

// figures is what Prometheus reads of a sender.
type figures struct {
	sent, failed, givenUp uint64
	waiting               int
}

// Measure has Prometheus read what the sender counts. A nil Sender, of a node without receivers, has zeros.
func (s *Sender) Measure(r *metrics.Registry) {
	metrics.Read(
		r, s.figures,
		metrics.Reading[figures]{
			Name: "webhooks_total", Help: "Webhooks that this signaling node sent, one for each receiver, by result: sent (accepted), failed (a try that was not; it is repeated for an hour), given_up.", Counter: true, Label: "result",
			Values: func(f figures) map[string]float64 {
				return map[string]float64{"sent": float64(f.sent), "failed": float64(f.failed), "given_up": float64(f.givenUp)}
			},
		},
		metrics.Reading[figures]{
			Name: "webhooks_waiting", Help: "Webhooks that this signaling node has tried and not yet delivered, with up to 99 behind each in its room; 0 unless it is the one that sends.",
			Value: func(f figures) float64 { return float64(f.waiting) },
		},
	)
}

func (s *Sender) figures() figures {
	if s == nil {
		return figures{}
	}
	now := figures{sent: s.counters.Sent.Load(), failed: s.counters.Failed.Load(), givenUp: s.counters.GivenUp.Load()}
	if s.leads.Load() {
		for _, l := range s.lines {
			now.waiting += l.waiting()
		}
	}
	return now
}
