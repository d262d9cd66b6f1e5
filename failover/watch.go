package failover

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
)

const (
	// A killed process's sockets close within milliseconds, so the first probe comes early.
	firstProbe  = 5 * time.Millisecond
	latestProbe = 500 * time.Millisecond
	// Twelve heartbeats are missing by then.
	suspectAfter = 2500 * time.Millisecond
	// A stream that lasted longer than this was healthy, so the back-off begins anew.
	settledStream = time.Second
)

// The beginnings of the reasons of a death.
const (
	whyProof  = "proof: "
	whyGossip = "gossip, "
)

// watch follows one boot by its stream of heartbeats, and probes it whenever the stream ends. It returns when ctx
// ends or the death is proven.
func (f *Failover) watch(ctx context.Context, w *watching) {
	stream := streamNever
	probe := backoff.Backoff{First: firstProbe, Most: latestProbe}
	for {
		started := time.Now()
		heard, err := f.listen(ctx, w)
		w.health.loseStream()
		f.reportUnreachable()
		if heard {
			stream = streamBroken
			if time.Since(started) > settledStream {
				probe.Reset()
			}
		}
		if !f.investigate(ctx, w, stream, err, &probe) || !backoff.Sleep(ctx, probe.Next()) {
			return
		}
	}
}

// investigate probes the node until it answers or its death is proven. It returns true if the node lives, and false
// after a death or when ctx ends.
func (f *Failover) investigate(ctx context.Context, w *watching, stream streamState, broke error, probe *backoff.Backoff) bool {
	node, began := w.node, time.Now()
	for suspected := false; ; suspected = true {
		done := w.health.ask()
		evidence := f.gather(ctx, node, stream)
		if evidence.Control == controlSame {
			w.health.heard()
		}
		done()
		if ctx.Err() != nil {
			return false
		}
		switch evidence.verdict() {
		case verdictDead:
			silence, _ := w.health.silence()
			f.config.Metrics.Detected(metrics.EvidenceProof, silence)
			f.config.Traces.Evidence(node.ID, node.Boot, "proof", evidence.String(), began)
			f.membership.ReportDead(node.ID, node.Boot, whyProof+evidence.String())
			return false
		case verdictAlive:
			// Only the connection broke.
			if suspected {
				f.log.Info("node answers again", "node", node.ID, "boot", node.Boot)
			}
			return true
		case verdictSuspect:
			if !suspected {
				f.log.Warn("node suspected", "node", node.ID, "boot", node.Boot, "evidence", evidence.String(), "error", broke)
			}
		}
		if !backoff.Sleep(ctx, probe.Next()) {
			return false
		}
	}
}

func (f *Failover) listen(ctx context.Context, w *watching) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(suspectAfter, func() { cancel(fmt.Errorf("no heartbeat within %s", suspectAfter)) })
	defer silence.Stop()
	err = f.nodes.Watch(ctx, w.node.Control, string(f.config.Self), func(hello control.Hello) error {
		if answer := controlOf(w.node, hello); answer != controlSame {
			return fmt.Errorf("answered by: %s", answer)
		}
		silence.Reset(suspectAfter)
		w.health.heard()
		heard = true
		return nil
	})
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return heard, err
}

// gather asks the control and the media port at one moment, so that both answers are of the same process.
func (f *Failover) gather(ctx context.Context, node cluster.Node, stream streamState) evidence {
	e := evidence{Stream: stream}
	var both sync.WaitGroup
	// These values stand if a question panics.
	e.Media, e.Control = mediaSilent, controlSilent
	both.Go(func() {
		f.catch("a question to a media port broke", func() { e.Media = f.askMedia(ctx, node.Media) }, "node", node.ID)
	})
	both.Go(func() {
		f.catch("a question to a node broke", func() { e.Control = f.askControl(ctx, node) }, "node", node.ID)
	})
	both.Wait()
	return e
}
