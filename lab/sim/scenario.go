// Package sim plays a scenario of a large cluster on a virtual clock, with the production code of placement: the ring, the
// headroom model and the Orchestrator of each signaling node. Nodes, people and the store are simulated. The same rooms are also placed by
// simpler policies, so that a figure has something beside it.
//
// It knows no network: a media node is a ceiling and the sum of its rooms, and a load report is as old as the scenario says.
package sim

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// The largest scenario.
const (
	maxNodes     = 2000
	maxRooms     = 2_000_000
	maxSignaling = 100
	maxCrowd     = 10_000
	maxTime      = 2 * time.Hour
)

// Scenario is what happens. Read makes one from text.
type Scenario struct {
	Name      string
	Nodes     []Kind        // at the start
	Racks     int           // node i stands in rack i modulo Racks; 0: none
	Signaling int           // signaling nodes, each with reservations of its own
	Reports   time.Duration // between two load reports, and so how old one may be
	Lifetime  time.Duration // of a room, on average; another one opens when it ends. 0: rooms stay
	Epsilon   float64       // of the bound; 0: the default
	Events    []Event       // by time
	End       time.Duration
}

// Kind is a number of equal nodes.
type Kind struct {
	Count   int
	Ceiling uint64 // bits per second
}

// Event happens once.
type Event struct {
	At     time.Duration
	What   string // "rooms", "crowd", "leave", "die", "rack" or "join"
	Count  int    // of rooms, people or nodes; of "rack", which one
	Within time.Duration
	Kind   Kind // of "join"
}

func (e Event) String() string {
	switch e.What {
	case "rooms":
		return fmt.Sprintf("%d rooms within %s", e.Count, e.Within)
	case "crowd":
		return fmt.Sprintf("%d people come within %s", e.Count, e.Within)
	case "leave":
		return fmt.Sprintf("%d people leave within %s", e.Count, e.Within)
	case "rack":
		return fmt.Sprintf("rack %d dies", e.Count)
	case "join":
		return fmt.Sprintf("%d join", e.Kind.Count)
	default:
		return fmt.Sprintf("%d die", e.Count)
	}
}

// Read reads a scenario, one statement a line; testdata/README.md has them. An error names the line.
func Read(name string, from io.Reader) (Scenario, error) {
	s := Scenario{Name: name, Signaling: 1, Reports: time.Second}
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		if err := s.statement(words); err != nil {
			return Scenario{}, fmt.Errorf("%s, line %d: %w", name, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Scenario{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, s.check()
}

func (s *Scenario) check() error {
	nodes, rooms := 0, 0
	for _, k := range s.Nodes {
		nodes += k.Count
	}
	first := nodes
	for i, e := range s.Events {
		nodes += e.Kind.Count
		if e.What == "rooms" {
			rooms += e.Count
		}
		switch {
		case e.At > s.End:
			return fmt.Errorf("%s: %q comes after the end at %s", s.Name, e, s.End)
		case i > 0 && e.At < s.Events[i-1].At:
			return fmt.Errorf("%s: %q comes before the event above it: sort them by time", s.Name, e)
		case e.What == "rack" && e.Count >= s.Racks:
			return fmt.Errorf("%s: there is no rack %d: `racks %d` numbers them from 0", s.Name, e.Count, s.Racks)
		}
	}
	switch {
	case first == 0:
		return fmt.Errorf("%s: no nodes at the start: begin with a line like `nodes 10 1Gbit`", s.Name)
	case nodes > maxNodes || rooms > maxRooms:
		return fmt.Errorf("%s: %d nodes and %d rooms: at most %d and %d", s.Name, nodes, rooms, maxNodes, maxRooms)
	case s.End <= 0 || s.End > maxTime:
		return fmt.Errorf("%s: it must `end` after more than nothing and at most %s", s.Name, maxTime)
	}
	return nil
}

var errWords = errors.New("expected `nodes N CEILING`, `racks N`, `signaling N`, `reports D`, `lifetime D`, `epsilon X`, `end D`, or `at D` with " +
	"`rooms N within D`, `crowd N within D`, `leave N within D`, `die N`, `die rack N` or `join N CEILING`")

func (s *Scenario) statement(words []string) (err error) {
	rest := words[1:]
	switch words[0] {
	case "at":
		return s.event(rest)
	case "nodes":
		var k Kind
		k, err = kind(rest)
		s.Nodes = append(s.Nodes, k)
	case "racks":
		s.Racks, err = count(rest, maxNodes)
	case "signaling":
		s.Signaling, err = count(rest, maxSignaling)
	case "reports":
		s.Reports, err = duration(rest)
		if err == nil && (s.Reports < tick || s.Reports%tick != 0) {
			err = fmt.Errorf("reports %s: whole seconds, please", s.Reports)
		}
	case "lifetime":
		s.Lifetime, err = duration(rest)
	case "end":
		s.End, err = duration(rest)
	case "epsilon":
		s.Epsilon, err = number(rest)
	default:
		err = errWords
	}
	return err
}

func (s *Scenario) event(words []string) error {
	if len(words) < 3 {
		return errWords
	}
	at, err := duration(words[:1])
	if err != nil {
		return err
	}
	e := Event{At: at, What: words[1]}
	switch rest := words[2:]; {
	case (e.What == "rooms" || e.What == "crowd" || e.What == "leave") && len(rest) == 3 && rest[1] == "within":
		most := maxRooms
		if e.What != "rooms" {
			most = maxCrowd
		}
		if e.Count, err = count(rest[:1], most); err == nil {
			e.Within, err = duration(rest[2:])
		}
	case e.What == "die" && rest[0] == "rack":
		e.What = "rack"
		e.Count, err = count(rest[1:], maxNodes)
	case e.What == "die":
		e.Count, err = count(rest, maxNodes)
	case e.What == "join":
		e.Kind, err = kind(rest)
	default:
		err = errWords
	}
	s.Events = append(s.Events, e)
	return err
}

func kind(words []string) (Kind, error) {
	if len(words) != 2 {
		return Kind{}, errWords
	}
	n, err := count(words[:1], maxNodes)
	if err != nil {
		return Kind{}, err
	}
	text, unit := strings.TrimSuffix(words[1], "Gbit"), uint64(1_000_000_000)
	if text == words[1] {
		text, unit = strings.TrimSuffix(words[1], "Mbit"), 1_000_000
	}
	ceiling, err := strconv.ParseUint(text, 10, 32)
	if err != nil || ceiling == 0 || text == words[1] {
		return Kind{}, fmt.Errorf("%q is no ceiling: write 500Mbit or 10Gbit", words[1])
	}
	return Kind{n, ceiling * unit}, nil
}

func count(words []string, most int) (int, error) {
	if len(words) != 1 {
		return 0, errWords
	}
	n, err := strconv.Atoi(words[0])
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%q is no number from 0 to %d", words[0], most)
	}
	return n, nil
}

func number(words []string) (float64, error) {
	if len(words) != 1 {
		return 0, errWords
	}
	x, err := strconv.ParseFloat(words[0], 64)
	if err != nil || !(x > 0 && x <= 1) {
		return 0, fmt.Errorf("%q is no number above 0, up to 1", words[0])
	}
	return x, nil
}

func duration(words []string) (time.Duration, error) {
	if len(words) != 1 {
		return 0, errWords
	}
	d, err := time.ParseDuration(words[0])
	if err != nil || d < 0 || d > maxTime {
		return 0, fmt.Errorf("%q is no time from 0s to %s", words[0], maxTime)
	}
	return d, nil
}
