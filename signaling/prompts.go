package signaling

import (
	"errors"
	"sync"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// prompts are messages that a client of LiveKit has not sent: its translator answers for it what a client of ours would say, e.g. which
// pictures it shows when somebody has come.
type prompts struct {
	wake chan struct{} // the translator has messages

	mu     sync.Mutex // held while messages are taken and delivered, so that they stay in order
	closed bool       // guarded by mu: in is closed
}

// rouse does not block. The translator calls it.
func (k *socket) rouse() {
	select {
	case k.prompts.wake <- struct{}{}:
	default:
	}
}

// prompt delivers what the translator says by itself, and at first the message that begins the session.
func (k *socket) prompt(ended <-chan struct{}) {
	for k.deliver(ended) {
		select {
		case <-k.prompts.wake:
		case <-ended:
			return
		}
	}
}

// translate has the translator read a client's frame.
func (k *socket) translate(frame []byte) (err error) {
	if caught := panics.Catch(func() { err = k.livekit.Read(frame) }); caught != nil {
		return errors.Join(errBroke, caught)
	}
	return err
}

// deliver gives the session what the translator has for it. It is false once the session has ended.
func (k *socket) deliver(ended <-chan struct{}) bool {
	k.prompts.mu.Lock()
	defer k.prompts.mu.Unlock()
	for _, m := range k.livekit.Take() {
		if k.prompts.closed {
			return false
		}
		select {
		case k.in <- inbound{message: m}:
		case <-ended:
			return false
		}
	}
	return true
}

// closeIn says that nothing more is read.
func (k *socket) closeIn() {
	k.prompts.mu.Lock()
	defer k.prompts.mu.Unlock()
	k.prompts.closed = true
	close(k.in)
}
