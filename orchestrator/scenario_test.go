package orchestrator

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

var update = flag.Bool("update", false, "write what the scenarios answer into testdata")

// TestScenarios runs testdata/*.txt on a fresh store of either kind. testdata/README.md has the language.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
				if err := server.Raw.FlushAll(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				runScenario(t, file, newScene(t, server))
			})
		}
	})
}

func runScenario(t *testing.T, file string, s *scene) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		command, want, question := strings.Cut(line, "=>")
		words := strings.Fields(command)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		got, err := s.run(words)
		if err != nil {
			t.Fatalf("%s:%d: %v", file, i+1, err)
		}
		want = strings.TrimSpace(want)
		if question && got != want && !*update {
			t.Errorf("%s:%d: %s\n  got  %s\n  want %s", file, i+1, strings.TrimSpace(command), got, want)
		}
		if question {
			lines[i] = strings.TrimRight(command, " ") + " => " + got
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// scene is the state of a scenario.
type scene struct {
	t         *testing.T
	server    storetest.Server
	store     *redisstore.Store
	views     *views
	addresses *addresses
	signaling *Orchestrator
	known     map[pin.Pin]bool // pins the scenario wrote itself
}

func newScene(t *testing.T, server storetest.Server) *scene {
	s := &scene{
		t: t, server: server, store: onRedis(t, server), views: fixed(nil),
		addresses: &addresses{boots: make(map[string]pin.BootID), holds: make(map[string]map[ring.RoomID]pin.Pin)}, known: make(map[pin.Pin]bool),
	}
	s.signaling = New(s.store, s.views, s.addresses, patient(), quiet)
	return s
}

// run carries out one line and returns the answer to a question.
func (s *scene) run(words []string) (string, error) {
	ctx, args := s.t.Context(), words[1:]
	room := func() ring.RoomID { return ring.RoomID(args[0]) }
	switch words[0] {
	case "view":
		return "", s.setView(args)
	case "gone": // gone a@1
		view := *s.views.View()
		node, n := parseBoot(args[0])
		view.Gone = map[pin.BootID]cluster.Departure{bootOf(node, n): cluster.DepartureDead}
		s.views.Store(&view)
		return "", nil
	case "address": // address a = b@2 | refused
		boot := pin.BootID("")
		if args[2] != "refused" {
			node, n := parseBoot(args[2])
			boot = bootOf(node, n)
		}
		s.addresses.boots[args[0]+".test:7000"] = boot
		return "", nil
	case "store": // store r = a@1 5000/1
		p := s.pin(args[2:])
		return "", s.server.Raw.Set(ctx, keyOf(room()), p.Encode(), time.Hour).Err()
	case "damage": // damage r = some text
		return "", s.server.Raw.Set(ctx, keyOf(room()), strings.Join(args[2:], " "), time.Hour).Err()
	case "open": // open r = a@1 5000/1
		p := s.pin(args[2:])
		s.addresses.open(string(p.Node), room(), p)
		return "", nil
	case "wrong-type": // the key holds a list
		s.server.Raw.Del(ctx, keyOf(room()))
		return "", s.server.Raw.LPush(ctx, keyOf(room()), "x").Err()
	case "lose":
		return "", s.server.Raw.Del(ctx, keyOf(room())).Err()
	case "new-signaling": // a signaling node that has seen nothing
		s.signaling = New(s.store, s.views, s.addresses, patient(), quiet)
		return "", nil
	case "observe":
		s.signaling.Observe(room(), parseFence(args[1]))
		return "", nil
	case "place":
		size := 0
		if len(args) > 1 {
			size, _ = strconv.Atoi(args[1])
		}
		return s.ask(func() (pin.Pin, error) { return s.signaling.Place(ctx, room(), headroom.Expect(size)) }), nil
	case "rehome":
		return s.ask(func() (pin.Pin, error) { return s.signaling.Rehome(ctx, room(), s.pin(args[1:]), headroom.Room{}) }), nil
	case "again":
		return s.ask(func() (pin.Pin, error) { return s.signaling.PlaceAgain(ctx, room(), s.pin(args[1:]), headroom.Room{}) }), nil
	case "again-standing": // whatever stands was refused by its node
		stands, _, err := s.store.Get(ctx, room())
		if err != nil {
			return "", err
		}
		return s.ask(func() (pin.Pin, error) { return s.signaling.PlaceAgain(ctx, room(), stands, headroom.Room{}) }), nil
	case "stands":
		return s.ask(func() (pin.Pin, error) { p, _, err := s.store.Get(ctx, room()); return p, err }), nil
	case "explain":
		e, err := s.signaling.Explain(ctx, room())
		return e.State, err
	}
	return "", fmt.Errorf("no such command: %s", words[0])
}

// ask describes the answer and how many round trips and dials it took.
func (s *scene) ask(question func() (pin.Pin, error)) string {
	trips, dials := s.store.RoundTrips(), s.addresses.asked
	p, err := question()
	trips, dials = s.store.RoundTrips()-trips, s.addresses.asked-dials
	cost := fmt.Sprintf("(%d trips)", trips)
	if dials > 0 {
		cost = fmt.Sprintf("(%d trips, %d dials)", trips, dials)
	}
	var headroom *NoHeadroomError
	switch {
	case errors.As(err, &headroom):
		return fmt.Sprintf("no headroom: needs %.1f, best %.1f Mbit/s %s", float64(headroom.Need.BitsPerSecond)/1e6, float64(headroom.Best.BitsPerSecond)/1e6, cost)
	case err != nil:
		for err := err; err != nil; err = errors.Unwrap(err) {
			if errors.Unwrap(err) == nil {
				return fmt.Sprintf("%v %s", err, cost)
			}
		}
	case p.IsZero():
		return "no pin " + cost
	}
	return s.describe(p) + " " + cost
}

// describe prints an epoch by the clock as "now", an unknown nonce as "*".
func (s *scene) describe(p pin.Pin) string {
	epoch, nonce := strconv.FormatUint(p.Fence.Epoch, 10), "*"
	if p.Fence.Epoch >= later && p.Fence.Epoch < later+10 {
		epoch = fmt.Sprintf("later+%d", p.Fence.Epoch-later)
	}
	if age := time.Since(time.UnixMilli(int64(p.Fence.Epoch))); age > -time.Minute && age < time.Minute {
		epoch = "now"
	}
	if s.known[p] {
		nonce = strconv.FormatUint(p.Fence.Nonce, 10)
	}
	number, _, _ := strings.Cut(string(p.Boot), "-")
	boot, _ := strconv.Atoi(number)
	return fmt.Sprintf("%s@%d %s/%s", p.Node, boot, epoch, nonce)
}

// setView reads "a@1 b@1,load=500 c@1,draining unsettled": loads in Mbit/s of 1000.
func (s *scene) setView(args []string) error {
	var nodes []cluster.Node
	settled := true
	for _, arg := range args {
		if arg == "unsettled" {
			settled = false
			continue
		}
		parts := strings.Split(arg, ",")
		node := sfu(parseBoot(parts[0]))
		for _, part := range parts[1:] {
			key, value, _ := strings.Cut(part, "=")
			switch key {
			case "draining":
				node.Draining = true
			case "load":
				mbit, err := strconv.ParseUint(value, 10, 64)
				if err != nil {
					return err
				}
				node.Load.EgressBitsPerSecond = mbit * 1_000_000
			}
		}
		nodes = append(nodes, node)
	}
	view := viewOf(nodes...)
	view.Settled = settled
	s.views.Store(view)
	return nil
}

// pin reads "a@1 5000/1".
func (s *scene) pin(words []string) pin.Pin {
	node, n := parseBoot(words[0])
	f := parseFence(words[1])
	p := pinAt(node, n, f.Epoch, f.Nonce)
	s.known[p] = true
	return p
}

func parseBoot(text string) (node string, n int) {
	node, number, _ := strings.Cut(text, "@")
	n, _ = strconv.Atoi(number)
	return node, n
}

// later is an epoch of a signaling node whose clock is an hour ahead.
var later = uint64(time.Now().Add(time.Hour).UnixMilli())

func parseFence(text string) pin.Fence {
	epoch, nonce, _ := strings.Cut(text, "/")
	e, _ := strconv.ParseUint(epoch, 10, 64)
	if epoch == "later" {
		e = later
	}
	n, _ := strconv.ParseUint(nonce, 10, 64)
	return pin.Fence{Epoch: e, Nonce: n}
}

var (
	_ PinStore            = (*redisstore.Store)(nil)
	_ pinowner.LeaseStore = (*redisstore.Store)(nil)
)
