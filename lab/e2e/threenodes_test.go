package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestThreeBrowsersOnThreeNodes: a room's people are at three media nodes, and see each other, encrypted from end to end, and with a
// publisher of AV1. The owner is killed: only its person restarts, and everybody sees everybody again.
func TestThreeBrowsersOnThreeNodes(t *testing.T) {
	t.Parallel()
	needChromium(t, 3)
	c := startCluster(t, devcluster.Options{SFU: 3})
	small := url.Values{"width": {"320"}, "height": {"180"}, "fps": {"10"}}
	for _, one := range []struct {
		name, firstCodec string
		sealed           bool
	}{
		{name: "encrypted", firstCodec: "VP8", sealed: true},
		{name: "AV1", firstCodec: "AV1"},
	} {
		t.Run(one.name, func(t *testing.T) {
			room := "three-" + one.name
			query := maps.Clone(small)
			if one.sealed {
				query = withKey(newKey(), query)
			}
			var people []*participant
			for i, name := range []string{"Ada", "Bob", "Clara"} {
				own := maps.Clone(query)
				if i == 0 {
					own.Set("codec", one.firstCodec)
				} else if said, code := holdfast(t, c, "spread", room); code != 0 {
					t.Fatalf("spread: exit code %d: %s", code, said)
				}
				eventually(t, time.Minute, "the branches are linked", func() error { return linked(t, c, room, i) })
				people = append(people, join(t, c.URL(), room, name, own))
				people[i].knowsItself(t)
			}
			allDecodeAll(t, time.Minute, people)
			owner, at := heldOnce(t, c, room), map[string]*participant{}
			for _, p := range people {
				at[p.mustStats(t).Node] = p
			}
			if len(at) != 3 || at[owner.Node] == nil {
				t.Fatalf("the people are at %v, and the owner is %s", at, owner.Node)
			}
			for _, p := range people[1:] {
				p.decodesAs(t, people[0], one.firstCodec)
			}
			before := map[*participant]callStats{}
			for _, p := range people {
				p.mark(t)
				before[p] = p.mustStats(t)
			}
			kill(t, c, owner.Node)
			for _, p := range people {
				p.isAt(t, owner.Epoch+1)
			}
			allDecodeAll(t, time.Minute, people)
			for _, p := range people {
				after := p.mustStats(t)
				if restarted := len(after.Migrations) > len(before[p].Migrations); restarted != (p == at[owner.Node]) {
					t.Errorf("%s was at %s, the owner %s was killed: restarted %t, %+v", p.name, before[p].Node, owner.Node, restarted, after.Migrations)
				}
				p.unchanged(t)
			}
			for _, p := range people {
				p.mustEval(t, "(call.leave(), 0)", nil)
			}
			restart(t, c, owner.Node)
		})
	}
}

// linked is nil once the room's owner is linked to so many branches.
func linked(t *testing.T, c *devcluster.Cluster, room string, branches int) error {
	t.Helper()
	if branches == 0 {
		return nil
	}
	said, _ := holdfast(t, c, "explain", room)
	if is := strings.Count(said, ", and is sent "); is != branches {
		return fmt.Errorf("%d are linked:\n%s", is, said)
	}
	return nil
}

// decodesAs waits until the pictures of another one are decoded, and of this codec.
func (p *participant) decodesAs(t *testing.T, sender *participant, codec string) {
	t.Helper()
	eventually(t, time.Minute, p.name+" decodes "+codec, func() error {
		var seen map[string]decoded
		err := p.eval(whatIsDecoded, &seen)
		if at := seen[sender.id]; err == nil && (at.Codec != codec || at.Frames < someFrames) {
			err = fmt.Errorf("it decodes %+v", seen)
		}
		return err
	})
}
