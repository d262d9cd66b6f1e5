//go:build long && linux

package e2e

import (
	"fmt"
	"maps"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestRoomMovesUnderEveryCodec moves a room live whose people send VP9, AV1 or one scalable stream, in the clear and encrypted from
// end to end (which is for VP8 and VP9).
func TestRoomMovesUnderEveryCodec(t *testing.T) { //nolint:paralleltest // two browsers that encode AV1 take both cores
	needChromium(t, atOnce)
	c := startCluster(t, devcluster.Options{})
	scalable := url.Values{"codec": {"VP9"}, "scalability": {"L3T3_KEY"}, "width": {"640"}, "height": {"360"}}
	for i, one := range []struct {
		name, codec string
		sealed      bool
		query       url.Values
	}{
		{"VP9", "VP9", false, url.Values{"codec": {"VP9"}}},
		{"AV1", "AV1", false, url.Values{"codec": {"AV1"}}},
		{"VP9, encrypted", "VP9", true, url.Values{"codec": {"VP9"}}},
		{"VP9 in layers, encrypted", "VP9", true, scalable},
		{"VP8, encrypted", "VP8", true, nil},
	} {
		t.Run(one.name, func(t *testing.T) {
			query := maps.Clone(one.query)
			if one.sealed {
				query = withKey(newKey(), query)
			}
			room := roomOn(t, "sfu-1", fmt.Sprintf("moves-%d", i))
			address := func(name string) string { return callAddress(c.URL(), room, name, query) }
			people := []*participant{{page: openPage(t, "Clara", address("Clara"))}, {page: openPage(t, "Carl", address("Carl"))}}
			for _, p := range people {
				p.knowsItself(t)
			}
			allDecodeAll(t, time.Minute, people)
			if node := heldOnce(t, c, room).Node; node != "sfu-1" {
				t.Fatalf("the room is on %s", node)
			}
			codecs := func() {
				t.Helper()
				for _, p := range people {
					other := people[0].id
					if p == people[0] {
						other = people[1].id
					}
					eventually(t, time.Minute, p.name+" decodes "+one.codec, func() error {
						var seen map[string]decoded
						err := p.eval(whatIsDecoded, &seen)
						if err == nil && (seen[other].Codec != one.codec || seen[other].Frames < someFrames) {
							err = fmt.Errorf("it decodes %+v", seen)
						}
						return err
					})
					var sealed bool
					if p.mustEval(t, "!document.querySelector('#encrypted').hidden", &sealed); sealed != one.sealed {
						t.Errorf("%s: encrypted is %t", p.name, sealed)
					}
				}
			}
			codecs()
			movesBackAndForth(t, c, room, people, moves(t))
			codecs()
			for _, p := range people {
				p.mustEval(t, "(call.leave(), 0)", nil)
			}
		})
	}
}
