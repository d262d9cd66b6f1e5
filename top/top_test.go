package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/tty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("connection refused")

// api answers as a signaling node does.
type api struct {
	people atomic.Int64
	away   atomic.Bool
	asked  atomic.Int64
	// died says that a node has died since the first question.
	died atomic.Bool
}

func (a *api) ask(_ context.Context, path string) ([]byte, error) {
	if a.away.Load() {
		return nil, errAway
	}
	a.asked.Add(1)
	what, query, _ := strings.Cut(path, "?")
	switch what {
	case "overview":
		return json.Marshal(map[string]any{
			"node": "signaling-1", "version": "0.2.0", "at": "2026-11-27T15:41:17Z", "rooms": 2, "peers": a.people.Load(), "sockets": 5, "waiting": 1,
			"egressBitsPerSecond": 820_000_000, "ceilingBitsPerSecond": 1_600_000_000, "storeMs": 0.4,
		})
	case "nodes":
		return []byte(`{"nodes":[
			{"node":"signaling-1","role":"signaling","state":"up","sockets":5},
			{"node":"sfu-10","role":"sfu","state":"up","draining":true,"rooms":1,"peers":1,"egressBitsPerSecond":20000000,"ceilingBitsPerSecond":800000000},
			{"node":"sfu-3","role":"sfu","state":"dead","at":"2026-11-27T15:40:00Z","cause":"stream broken\u001b[2J"},
			{"node":"sfu-2","role":"sfu","state":"up","rooms":1,"peers":4,"egressBitsPerSecond":80000000,"ceilingBitsPerSecond":800000000,
				"egressPacketsPerSecond":95000,"ceilingPacketsPerSecond":100000}]}`), nil
	case "loads":
		return []byte(`{"everySeconds":10,"loads":{"sfu-2":[-1,0,10,50,95,100]}}`), nil
	case "room-list":
		if strings.Contains(query, "sort=people") {
			return []byte(`{"rooms":[{"room":"blue","node":"sfu-2","people":4,"connected":3,"egressBitsPerSecond":80000000}],"found":2,"total":2}`), nil
		}
		return []byte(`{"rooms":[{"room":"hall\u202e","node":"sfu-10","people":1,"connected":1,"egressBitsPerSecond":20000000,"packetsDropped":7}],"found":2,"total":2,"unreachable":["sfu-3"]}`), nil
	case "events":
		if a.died.Swap(false) {
			return []byte(`{"events":[{"id":"7-0","at":"2026-11-27T15:41:20Z","kind":"node_down","node":"sfu-2","cause":"silent"}],"next":"7-0"}`), nil
		}
		if strings.Contains(query, "since=15m") {
			return []byte(`{"events":[{"id":"5-0","at":"2026-11-27T15:41:00Z","kind":"node_up","node":"sfu-2"}],"next":"5-0"}`), nil
		}
		return []byte(`{"events":[],"next":"5-0"}`), nil
	}
	return nil, errors.New("asked for " + path)
}

func picture(t *testing.T, a *api, q question) Picture {
	t.Helper()
	a.people.Store(5)
	p, err := newFeed(a.ask).next(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheScreen(t *testing.T) {
	here := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = here })
	p := picture(t, &api{}, usualQuestion())
	draw := func(narrow bool) string {
		s := screen{paint: tty.Paint(false), sorted: "egress", narrow: narrow}
		rows := append(s.head(p.Overview), s.nodes(p.Nodes)...)
		rows = append(append(rows, s.rooms(p.Rooms, p.Nodes)...), s.happened(p.Happened)...)
		for i, row := range rows {
			rows[i] = strings.TrimRight(row, " ")
		}
		return strings.Join(rows, "\n") + "\n"
	}
	const wide = `Holdfast  15:41:17  as signaling-1 sees it, version 0.2.0
2 rooms  5 people  5 sockets  1 waiting  820.0 Mbit/s of 1.6 Gbit/s (51 %)  store 0.4 ms
NODE                  STATE        LOAD              LAST 15 MINUTES     ROOMS  PEOPLE  SOCKETS
sfu-2                 up           █████████▌  95 %       ▁  ▁  ▅  █  █      1       4        -
sfu-10                draining     ▎········· 2.5 %                          1       1        -
signaling-1           up                                                     -       -        5
sfu-3                 dead         15:40:00  stream broken�[2J
ROOM                              NODE                    PEOPLE          SENT*   SHARE    DROPPED
hall�                             sfu-10                       1    20.0 Mbit/s   2.5 %          7
No answer from sfu-3.
15:41:00  sfu-2 is up
`
	const narrow = `Holdfast  15:41:17  as signaling-1 sees it, version 0.2.0
2 rooms  5 people  5 sockets  1 waiting  820.0 Mbit/s (51 %)  store 0.4 ms
NODE          STATE        LOAD              ROOMS  PEOPLE  SOCKETS
sfu-2         up           █████████▌  95 %      1       4        -
sfu-10        draining     ▎········· 2.5 %      1       1        -
signaling-1   up                                 -       -        5
sfu-3         dead         15:40:00  stream broken�[2J
ROOM                    NODE            PEOPLE          SENT*   SHARE    DROPPED
hall�                   sfu-10               1    20.0 Mbit/s   2.5 %          7
No answer from sfu-3.
15:41:00  sfu-2 is up
`
	for want, got := range map[string]string{wide: draw(false), narrow: draw(true)} {
		if got != strings.ReplaceAll(want, `\ufffd`, "�") {
			t.Errorf("drawn\n%s\nwant\n%s", got, want)
		}
	}
}

func TestBarsAndSparks(t *testing.T) {
	for share, want := range map[float64]string{-1: "··········", 0: "··········", 0.5: "█████·····", 0.95: "█████████▌", 2: "██████████", 0.0625: "▋·········"} {
		if got := bar(share); got != want {
			t.Errorf("bar of %v: %s, want %s", share, got, want)
		}
	}
	if got, want := spark(nil), strings.Repeat(" ", sparkWidth); got != want {
		t.Errorf("no loads: %q", got)
	}
	loads := make([]int16, 2*sparkWidth)
	for i := range loads {
		loads[i] = int16(100 * i / len(loads))
	}
	loads[0], loads[1] = -1, -1
	if got, want := spark(loads), " ▁▂▂▃▃▃▄▄▅▅▆▆▇▇▇██"; got != want {
		t.Errorf("rising loads: %q, want %q", got, want)
	}
}

// TestKeysAndAnswers: the screen fits the terminal, a key sorts and scrolls, and a question that fails leaves the last picture.
func TestKeysAndAnswers(t *testing.T) {
	a := &api{}
	m := &live{ctx: t.Context(), feed: newFeed(a.ask), every: time.Second, picture: picture(t, a, usualQuestion()), question: usualQuestion()}
	do := func(msg tea.Msg) tea.Cmd {
		_, cmd := m.Update(msg)
		return cmd
	}
	shown := func() string { return strings.Join(m.rows(), "\n") }
	for _, size := range []tea.WindowSizeMsg{{Width: 130, Height: 40}, {Width: 80, Height: 24}, {Width: 40, Height: 16}} {
		do(size)
		rows := m.rows()
		if len(rows) > size.Height {
			t.Errorf("%d rows in %d", len(rows), size.Height)
		}
		for _, row := range rows {
			if ansi.StringWidth(row) > size.Width {
				t.Errorf("%d columns in %d: %s", ansi.StringWidth(row), size.Width, row)
			}
		}
	}
	do(tea.WindowSizeMsg{Width: 130, Height: 40})
	do(tea.KeyPressMsg{Code: 's', Text: "s"})
	do(tea.KeyPressMsg{Code: tea.KeyDown})
	do(tea.KeyPressMsg{Code: tea.KeyDown})
	if m.question.sort != "people" || m.question.offset != 1 {
		t.Errorf("the question is %+v", m.question)
	}
	do(do(due{})()) // asks, and takes the answer
	if text := shown(); !strings.Contains(text, "blue ") || !strings.Contains(text, "3 of 4") || !strings.Contains(text, "PEOPLE*") || !strings.Contains(text, "from room 2 of 2") {
		t.Errorf("by people:\n%s", text)
	}
	a.away.Store(true)
	do(do(due{})())
	if text := shown(); !strings.Contains(text, "No answer: connection refused") || !strings.Contains(text, "blue ") {
		t.Errorf("without an answer:\n%s", text)
	}
	a.away.Store(false)
	do(do(due{})())
	if text := shown(); strings.Contains(text, "No answer: ") {
		t.Errorf("with an answer again:\n%s", text)
	}
	if cmd := do(tea.KeyPressMsg{Code: 'q', Text: "q"}); cmd == nil || cmd() != tea.Quit() {
		t.Error("q does not quit")
	}
}

// TestTheLiveScreenEnds by a key and by the context.
func TestTheLiveScreenEnds(t *testing.T) {
	for name, in := range map[string]io.Reader{"a key": strings.NewReader("q"), "the context": nil} {
		ctx, cancel := context.WithCancel(t.Context())
		a, out := &api{}, &bytes.Buffer{}
		p := picture(t, a, usualQuestion())
		if in == nil {
			cancel()
		}
		if err := runLive(ctx, Options{Every: time.Second, In: in, Out: out}, newFeed(a.ask), p); err != nil {
			t.Errorf("by %s: %v", name, err)
		}
		cancel()
	}
}

// lines ends the context after some lines.
type lines struct {
	bytes.Buffer

	want   string
	cancel context.CancelFunc
	next   func(text string)
}

func (l *lines) Write(p []byte) (int, error) {
	n, err := l.Buffer.Write(p)
	if strings.Contains(l.String(), l.want) {
		l.cancel()
	}
	l.next(string(p))
	return n, err
}

// TestPlainLines are for pipes: the whole picture once, then what changes.
func TestPlainLines(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := &api{}
	a.people.Store(5)
	out := &lines{want: "no answer: connection refused", cancel: cancel}
	out.next = func(text string) {
		switch {
		case strings.Contains(text, "sfu-2 is up"): // the end of the first picture
			a.people.Store(6)
			a.died.Store(true)
		case strings.Contains(text, "6 people"):
			a.away.Store(true)
		}
	}
	if err := Run(ctx, Options{Ask: a.ask, In: strings.NewReader(""), Out: out}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sfu-10", "  sfu-2 died (silent)\n", "  1 of 3 media nodes up, 2 rooms, 6 people, 820.0 Mbit/s (51 %)\n"} {
		if strings.Count(out.String(), want) < 1 {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("colours in a pipe:\n%q", out.String())
	}
}

func TestJSONIsAPictureALine(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := &api{}
	out := &lines{want: "\n", cancel: cancel, next: func(string) {}}
	if err := Run(ctx, Options{Ask: a.ask, In: strings.NewReader(""), Out: out, JSON: true}); err != nil {
		t.Fatal(err)
	}
	var p Picture
	if err := json.Unmarshal(out.Bytes(), &p); err != nil || len(p.Nodes) != 4 || p.Overview.Sockets != 5 {
		t.Errorf("%v: %s", err, out.String())
	}
	a.away.Store(true)
	if err := Run(t.Context(), Options{Ask: a.ask, In: strings.NewReader(""), Out: out}); !errors.Is(err, errAway) {
		t.Errorf("the first answer is an error: %v", err)
	}
}
