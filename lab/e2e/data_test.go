package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// joinWithData has the page join a room with data channels, and keep what it hears: sender, topic, text, and whether reliable.
const joinWithData = `(async (room, name) => {
  const { Call } = await import('/holdfast/index.js');
  const { fetchToken } = await import('/page/tokens.js');
  const call = new Call({ data: true, audioSlots: 1, videoSlots: 1 });
  globalThis.call = call;
  globalThis.heard = [];
  call.addEventListener('data', ({ detail: { peer, topic, payload, reliable } }) => globalThis.heard.push([peer, topic, new TextDecoder().decode(payload), reliable].join(' ')));
  await call.join({ url: location.origin, token: await fetchToken('', room, name), room, name });
  return call.peer;
})(%q, %q)`

// saysData says something until the others have heard it, because who is connecting misses it.
func saysData(t *testing.T, from *participant, to []*participant, topic string, reliable bool) {
	t.Helper()
	want := fmt.Sprintf("%s %s hello %v", from.id, topic, reliable)
	eventually(t, time.Minute, want, func() error {
		from.mustEval(t, fmt.Sprintf("call.data.send('hello', { topic: %q, reliable: %v })", topic, reliable), nil)
		for _, p := range to {
			var heard bool
			p.mustEval(t, fmt.Sprintf("heard.includes(%q)", want), &heard)
			if !heard {
				return fmt.Errorf("%s has not heard it", p.name)
			}
		}
		return nil
	})
}

// TestDataOfACall: messages of both kinds go to all, or to one, before and after the death of the room's node, on the same connection.
func TestDataOfACall(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 2})
	var people []*participant
	for _, name := range []string{"Ada", "Alan"} {
		p := &participant{page: openPage(t, name, c.URL())}
		p.sees(t, "the lobby", `document.querySelector('#enter')`)
		p.mustEval(t, fmt.Sprintf(joinWithData, "data", name), &p.id)
		people = append(people, p)
	}
	for _, when := range []string{"first", "moved"} {
		for i, p := range people {
			others := []*participant{people[1-i]}
			saysData(t, p, others, when, true)
			saysData(t, p, others, when, false)
			eventually(t, time.Minute, p.name+" tells the other", func() error {
				p.mustEval(t, fmt.Sprintf("call.data.send('for nobody', { topic: %q, to: ['nobody'] }) && call.data.send('for you', { topic: %[1]q, to: [%q] })", when, others[0].id), nil)
				var heard bool
				others[0].mustEval(t, fmt.Sprintf("heard.includes('%s %s for you true')", p.id, when), &heard)
				if !heard {
					return fmt.Errorf("%s has not heard it", others[0].name)
				}
				return nil
			})
			var wrong []string
			others[0].mustEval(t, "heard.filter((line) => line.includes('nobody'))", &wrong)
			if len(wrong) > 0 {
				t.Errorf("%s hears what is for nobody: %v", others[0].name, wrong)
			}
		}
		if when == "first" {
			for _, p := range people {
				p.mustEval(t, "globalThis.former = call.epoch", nil)
			}
			kill(t, c, heldOnce(t, c, "data").Node)
			for _, p := range people {
				p.sees(t, "the move", "call.epoch > former && call.state === 'live'")
			}
		}
	}
	for _, p := range people {
		var connection int
		p.mustEval(t, "call.stats().then(({ pcId }) => pcId)", &connection)
		if connection != 1 {
			t.Errorf("%s has connection %d, want the first", p.name, connection)
		}
	}
}
