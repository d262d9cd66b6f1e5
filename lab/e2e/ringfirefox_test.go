//go:build long && linux

package e2e

import (
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestRingsInFirefox: each browser rings the other, who is on the start page of another signaling node, loads the page anew
// while it rings, and accepts into the room.
func TestRingsInFirefox(t *testing.T) {
	t.Parallel()
	needFirefox(t, 3)
	c := startCluster(t, devcluster.Options{MediaHost: ownAddress(t)})
	start := url.Values{"autojoin": {"0"}}
	fox := &participant{page: openFirefox(t, "Felix", callAddress(atNode(t, c, "signaling-1"), "", "Felix", start))}
	chrome := &participant{page: openPage(t, "Clara", callAddress(atNode(t, c, "signaling-2"), "", "Clara", start))}
	for _, call := range []struct {
		name           string
		caller, callee *participant
	}{{"from-chromium", chrome, fox}, {"from-firefox", fox, chrome}} {
		t.Run(call.name, func(t *testing.T) {
			for _, p := range []*participant{call.caller, call.callee} {
				p.id = ""
			}
			call.callee.visit(t, callAddress(atNode(t, c, "signaling-2"), "", call.callee.name, start), `document.querySelector('#preview').videoWidth > 0`)
			call.caller.visit(t, callAddress(atNode(t, c, "signaling-1"), call.name, call.caller.name, nil), "globalThis.call")
			call.caller.knowsItself(t)
			eventuallyRings(t, call.caller, call.callee)
			call.callee.reloads(t, rung(call.caller.name))
			call.callee.mustEval(t, `(document.querySelector('#ring-accept').click(), true)`, nil)
			call.caller.sees(t, "a yes", ringIs("accepted"))
			call.callee.knowsItself(t)
			allDecodeAll(t, time.Minute, []*participant{call.caller, call.callee})
		})
	}
}
