package failover

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

var update = flag.Bool("update", false, "write what the scenarios really do into testdata")

// TestScenarios runs every file of testdata: commands, a line of dashes, and what
// happened. Time is that of the bubble, so a scenario of two minutes takes none.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(raw)) })
			switch {
			case got == string(raw):
			case *update:
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s happens differently:\n%s", file, firstDifference(string(raw), got))
			}
		})
	}
}

// play runs one scenario and returns its text with what really happened.
func play(t *testing.T, text string) string {
	w := newWorld(t)
	defer w.stop()
	var out strings.Builder
	skipping := false // what the file expects to happen
	for line := range strings.Lines(text) {
		command := strings.TrimSpace(line)
		switch {
		case command == "----":
			skipping = true
			synctest.Wait()
			out.WriteString(line + w.takeEntries())
		case command == "":
			skipping = false
			out.WriteString(line)
		case skipping:
		default:
			out.WriteString(line)
			if !strings.HasPrefix(command, "#") {
				w.run(strings.Fields(command))
				synctest.Wait()
			}
		}
	}
	return out.String()
}

// run carries out one command; DESIGN.md says how a scenario is written.
func (w *world) run(words []string) {
	verb, args := words[0], words[1:]
	switch verb {
	case "wait":
		pause, err := time.ParseDuration(args[0])
		if err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(pause) //nolint:forbidigo // the bubble's clock: no time passes
	case "sfu":
		for _, name := range args {
			w.startSFU(name)
		}
	case "standby-sfu": // they stand by for each other
		for _, name := range args {
			w.startSFU(name, control.CapabilityStandby)
		}
	case "whole": // all connections of a room can go on at a node
		w.change(func() {
			for _, e := range w.signalingNodes {
				if room, here := e.rooms[ring.RoomID(args[0])]; here {
					room.WholeAt = w.sfus[args[1]].node.Boot
					e.rooms[room.Room] = room
				}
			}
		})
	case "signaling":
		for _, name := range args {
			w.startSignaling(name)
		}
	case "room":
		w.room(ring.RoomID(args[0]), args[2], args[3:])
	case "strange-pin":
		w.change(func() {
			w.store.pins[ring.RoomID(args[0])] = pin.Pin{
				Fence: pin.Fence{Epoch: 100}, Node: ring.NodeID(args[1]), Boot: pin.BootID("0000000000000-" + args[0]), Control: args[2] + ":1",
			}
		})
	case "crash":
		w.signalingNodes[args[0]].stop()
		w.change(func() { delete(w.signalingNodes, args[0]) })
		w.gossipAll(func(e *signalingNode) {
			e.remove(cluster.Node{ID: ring.NodeID(args[0]), Boot: pin.BootID("boot of " + args[0]), Role: cluster.RoleSignaling}, cluster.DepartureDead, "gossip")
		})
	case "misses-moves", "hears-moves":
		w.change(func() { w.signalingNodes[args[0]].missesMoves = verb == "misses-moves" })
	case "stop": // a signaling node, as by SIGSTOP or a machine without CPU for it
		pause, err := time.ParseDuration(args[1])
		if err != nil {
			w.t.Fatal(err)
		}
		w.change(func() { w.signalingNodes[args[0]].stopped = time.Now().Add(pause) })
	case "mine": // the next line of this text in a log makes its writer panic
		w.change(func() { w.mine = strings.Join(args, " ") })
	case "store":
		w.change(func() { w.store.down = args[0] == "down" })
	case "pins":
		w.showPins()
	default:
		w.process(verb, args)
	}
}

// process does something to an SFU process.
func (w *world) process(verb string, args []string) {
	p := w.sfus[args[0]]
	switch verb {
	case "kill":
		w.change(func() { w.kill(args[0]) })
	case "restart":
		w.restart(args[0])
	case "declare":
		w.gossipAll(func(e *signalingNode) { e.suspect(p.node, true) })
	case "mute", "unmute":
		w.change(func() { p.mute = verb == "mute" })
	case "aloof", "welcoming": // it answers nobody new
		w.change(func() { p.noAnswer = verb == "aloof" })
	case "hush", "unhush": // and it answers no questions, but runs
		w.change(func() { p.mute, p.noAnswer = verb == "hush", verb == "hush" })
	case "full", "roomy":
		w.change(func() { p.full = verb == "full" })
	case "drain", "overdue", "undrain":
		p.node.Draining, p.node.Overdue = verb != "undrain", verb == "overdue"
		w.gossipAll(func(e *signalingNode) {
			e.change(func(v *cluster.View) { v.Nodes[p.node.ID] = p.node }, cluster.Event{})
		})
	case "leave":
		w.gossipAll(func(e *signalingNode) { e.remove(p.node, cluster.DepartureLeft, "leave message") })
		w.change(func() { w.kill(args[0]) })
	case "return":
		w.gossipAll(func(e *signalingNode) { e.join(p.node) })
	case "freeze", "thaw":
		w.change(func() { p.frozen = verb == "freeze" })
	case "break":
		w.change(func() { close(p.broken); p.broken = make(chan struct{}) })
	case "unrefused": // what the signaling node sends to the node is lost, and refused no more
		w.change(func() { w.signalingNodes[args[1]].limited[args[0]] = true })
	case "stall": // clients at a signaling node, as many as the third word says
		count, err := strconv.Atoi(args[2])
		if err != nil {
			w.t.Fatal(err)
		}
		w.change(func() { w.signalingNodes[args[1]].stalls[p.node.Boot] = count })
	case "firewall":
		w.change(func() {
			p.noControl, p.noMedia = args[1] == "control", args[1] == "media"
			close(p.broken)
			p.broken = make(chan struct{})
		})
	default:
		w.t.Fatalf("unknown command %q", verb)
	}
}

// change does something under the world's lock.
func (w *world) change(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
}

// kill ends a process. The caller holds mu.
func (w *world) kill(name string) {
	if p := w.sfus[name]; p.running {
		p.running = false
		close(p.broken)
	}
}

// room opens a room on a node, with people at some signaling nodes ("signaling-1=30").
func (w *world) room(room ring.RoomID, on string, people []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.sfus[on]
	placed := pin.Pin{Fence: pin.Fence{Epoch: 100}, Node: p.node.ID, Boot: p.node.Boot, Control: p.node.Control}
	w.store.pins[room] = placed
	p.holds[room] = placed.Fence
	all, at := 0, map[string]int{}
	for _, some := range people {
		name, count, _ := strings.Cut(some, "=")
		peers, err := strconv.Atoi(count)
		if err != nil {
			w.t.Fatal(err)
		}
		all, at[name] = all+peers, peers
	}
	for name, peers := range at {
		w.signalingNodes[name].rooms[room] = LocalRoom{Room: room, Pin: placed, Peers: peers, Expect: headroom.Room{People: all}}
	}
}

// showPins logs where each room is, for the store, the signaling nodes and the processes.
func (w *world) showPins() {
	w.mu.Lock()
	defer w.mu.Unlock()
	show := func(who string, room ring.RoomID, text string) {
		w.entries = append(w.entries, entry{time.Since(w.started), who, string(room), text})
	}
	for room, p := range w.store.pins {
		show("(store)", room, fmt.Sprintf("%s is on %s, epoch %d", room, p.Node, p.Fence.Epoch))
	}
	for name, e := range w.signalingNodes {
		for room, local := range e.rooms {
			show(name, room, fmt.Sprintf("%s is on %s, epoch %d", room, local.Pin.Node, local.Pin.Fence.Epoch))
		}
	}
	for name, p := range w.sfus {
		if p.running && len(p.holds) > 0 {
			show(name, "", fmt.Sprintf("holds %v", slices.Sorted(maps.Keys(p.holds))))
		}
	}
}

// firstDifference shows the lines around the first one that differs.
func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	around := func(lines []string) string {
		return strings.Join(lines[max(0, min(i-3, len(lines))):min(i+6, len(lines))], "\n")
	}
	return fmt.Sprintf("--- line %d, written:\n%s\n--- happened:\n%s", i+1, around(a), around(b))
}
