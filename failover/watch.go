package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
)

const (
	// The first looks come close together, because a killed process closes its sockets
	// one after the other, within a few milliseconds; a node that stays in doubt is looked
	// at twice a second.
	firstLook  = 5 * time.Millisecond
	latestLook = 500 * time.Millisecond
	// settledStream: a stream that lasted this long was no flicker, and what comes after it is
	// a new story with a fresh back-off.
	settledStream = time.Second
)

// whyProof is the reason of a death that was proven here.
const whyProof = "proof"

// errSilent ends a stream whose beats stopped.
var errSilent = errors.New("no beat")

// strangerError ends a stream on which somebody else answers.
type strangerError struct{ answer Control }

func (e *strangerError) Error() string { return "answered by: " + string(e.answer) }

// watch holds a Watch stream to one boot for as long as gossip takes it for live
// (ctx), and looks for evidence whenever it breaks. It ends with the proof of
// its death.
func (f *Failover) watch(ctx context.Context, w *watching) {
	stream := StreamNever
	look := backoff{first: firstLook, most: latestLook}
	for {
		started := time.Now()
		heard, err := f.listen(ctx, w)
		w.life.lose()
		f.sayWhoIsSilent()
		if heard {
			stream = StreamBroken
			if time.Since(started) > settledStream {
				look.reset()
			}
		}
		if !f.investigate(ctx, w, stream, err, &look) || !sleep(ctx, look.next()) {
			return
		}
	}
}

// investigate looks at a node whose stream broke until it answers (true), or until its death is
// proven or gossip no longer takes it for live (false).
func (f *Failover) investigate(ctx context.Context, w *watching, stream Stream, broke error, look *backoff) bool {
	node := w.node
	for suspected := false; ; suspected = true {
		answered := w.life.ask()
		evidence := f.gather(ctx, node, stream)
		if evidence.Control == ControlSame {
			w.life.sign()
		}
		answered()
		if ctx.Err() != nil {
			return false
		}
		switch evidence.Verdict() {
		case VerdictDead:
			f.prove(node, evidence)
			return false
		case VerdictAlive: // The connection broke, not the node.
			if suspected {
				f.log.Info("node answers again", "node", node.ID, "boot", node.Boot)
			}
			return true
		case VerdictSuspect:
			if !suspected {
				f.log.Warn("node suspected", "node", node.ID, "boot", node.Boot, "evidence", evidence.String(), "error", broke)
			}
		}
		if !sleep(ctx, look.next()) {
			return false
		}
	}
}

// listen holds one stream and returns why it ended, and whether it ever beat.
func (f *Failover) listen(ctx context.Context, w *watching) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(f.config.SilentAfter, func() { cancel(errSilent) })
	defer silence.Stop()
	err = f.nodes.Watch(ctx, w.node.Control, string(f.config.Self), func(hello control.Hello) error {
		if answer := controlOf(w.node, hello); answer != ControlSame {
			return &strangerError{answer}
		}
		silence.Reset(f.config.SilentAfter)
		w.life.sign()
		heard = true
		return nil
	})
	if errors.Is(context.Cause(ctx), errSilent) {
		err = fmt.Errorf("%w within %s", errSilent, f.config.SilentAfter)
	}
	return heard, err
}

// prove reports a death. The event that follows starts everything else.
func (f *Failover) prove(node cluster.Node, evidence Evidence) {
	f.mu.Lock()
	f.evidence[node.Boot] = evidence.String()
	f.mu.Unlock()
	f.membership.ReportDead(node.ID, node.Boot, whyProof)
}
