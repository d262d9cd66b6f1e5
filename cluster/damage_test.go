package cluster

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/pin"
)

// A load report that is damaged, or says what no node can send, is said in the log and not believed, however it comes: the last good one
// stands, and the next good one replaces it.
func TestDamagedLoadReportIsReportedAndNotBelieved(t *testing.T) {
	from, good := sfuNode("sfu-2", 2), Load{Seq: 7, EgressBitsPerSecond: 1_000_000, CeilingBitsPerSecond: 1_000_000_000, Synced: pin.IncarnationsOf([]pin.Incarnation{3})}
	report := func(change func(*Load)) []byte {
		load := good
		load.Seq++
		change(&load)
		return message{kind: kindLoad, from: from, load: load}.encode()
	}
	whole := report(func(*Load) {})
	for name, in := range map[string][]byte{
		"sends more than can be":        report(func(l *Load) { l.EgressBitsPerSecond = math.MaxUint64 }),
		"may send more than can be":     report(func(l *Load) { l.CeilingBitsPerSecond = math.MaxUint64 }),
		"more packets than can be":      report(func(l *Load) { l.EgressPacketsPerSecond = math.MaxUint64 }),
		"may send more packets":         report(func(l *Load) { l.CeilingPacketsPerSecond = math.MaxUint64 }),
		"a number that hides all later": report(func(l *Load) { l.Seq = math.MaxUint64 }),
		"cut off":                       whole[:len(whole)-10],
		"of an unknown kind":            append([]byte{99}, whole[1:]...),
		"nothing":                       {},
	} {
		for _, way := range []string{"gossiped", "exchanged"} {
			t.Run(way+"/"+name, func(t *testing.T) {
				var said bytes.Buffer
				c, err := New(validConfig(), slog.New(slog.NewTextHandler(&said, nil)))
				if err != nil {
					t.Fatal(err)
				}
				hear := func(in []byte) {
					if way == "gossiped" {
						delegate{c}.NotifyMsg(in)
					} else {
						delegate{c}.MergeRemoteState(append(binary.AppendUvarint(nil, uint64(len(in))), in...), false)
					}
					for len(c.mailbox) > 0 {
						(<-c.mailbox)()
					}
					c.publish(nil)
				}
				c.publish(c.members.join(from))
				hear(message{kind: kindLoad, from: from, load: good}.encode())
				for range 3 {
					hear(in)
				}
				if got := c.View().Nodes[from.ID].Load; got != good {
					t.Errorf("the view has the load %+v, want the last good one", got)
				}
				if lines := strings.Count(said.String(), "level=WARN"); lines != 1 || !strings.Contains(said.String(), "dropped") {
					t.Errorf("%d warnings, want one for all three:\n%s", lines, said.String())
				}
				hear(message{kind: kindLoad, from: from, load: Load{Seq: 9}}.encode())
				if got := c.View().Nodes[from.ID].Load; got.Seq != 9 {
					t.Errorf("the next good report is not taken: %+v", got)
				}
			})
		}
	}
}
