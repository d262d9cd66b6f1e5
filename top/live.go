package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/tty"
)

// live is the state of the screen. Bubble Tea calls its methods one at a time.
type live struct {
	ctx    context.Context //nolint:containedctx // Bubble Tea's commands take none
	feed   *feed
	every  time.Duration
	colors bool

	picture       Picture
	failed        error // of the latest question; nil if it was answered
	question      question
	width, height int
}

// wideFrom is the width in columns from which on everything fits.
const wideFrom = 105

// answered is the end of a question.
type answered struct {
	picture Picture
	err     error
}

// due says that it is time for the next question.
type due struct{}

func runLive(ctx context.Context, o Options, f *feed, first Picture) error {
	onScreen, leave := context.WithCancel(ctx)
	defer leave()
	m := &live{ctx: onScreen, feed: f, every: o.Every, colors: tty.Colors(o.Out), picture: first, question: usualQuestion()}
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	_, err := program.Run()
	if ctx.Err() != nil || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("show the cluster: %w", err)
	}
	return nil
}

// Init asks for the second picture later.
func (m *live) Init() tea.Cmd { return m.later() }

// later is tea.Tick, but ends with the screen.
func (m *live) later() tea.Cmd {
	return func() tea.Msg {
		backoff.Sleep(m.ctx, m.every)
		return due{}
	}
}

func (m *live) ask() tea.Cmd {
	q := m.question
	return func() tea.Msg {
		picture, err := m.feed.next(m.ctx, q)
		return answered{picture, err}
	}
}

// Update takes an answer, a key or the terminal's size. Only one question is open at a time.
func (m *live) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case due:
		return m, m.ask()
	case answered:
		if m.failed = msg.err; msg.err == nil {
			m.picture = msg.picture
		}
		m.question.offset = max(0, min(m.question.offset, m.picture.Rooms.Found-1))
		return m, m.later()
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	}
	return m, nil
}

func (m *live) press(key string) tea.Cmd {
	switch key {
	case "q", "esc", "ctrl+c":
		return tea.Quit
	case "s":
		all := sorts()
		m.question.sort, m.question.offset = all[(slices.Index(all, m.question.sort)+1)%len(all)], 0
	case "down", "j":
		m.question.offset++
	case "up", "k":
		m.question.offset--
	case "pgdown", "space":
		m.question.offset += 10
	case "pgup":
		m.question.offset -= 10
	case "home", "g":
		m.question.offset = 0
	}
	m.question.offset = max(0, min(m.question.offset, m.picture.Rooms.Found-1))
	return nil
}

// View fills the terminal: a third for what happened, and what the nodes leave over for rooms.
func (m *live) View() tea.View {
	view := tea.NewView(strings.Join(m.rows(), "\n"))
	view.AltScreen = true
	view.WindowTitle = "holdfast top"
	return view
}

func (m *live) rows() []string {
	s := screen{paint: tty.Paint(m.colors), sorted: m.question.sort, narrow: m.width < wideFrom}
	rows := s.head(m.picture.Overview)
	if m.failed != nil {
		rows[1] = s.paint(tty.Red, "No answer: "+visible(m.failed.Error()))
	}
	left := max(m.height-len(rows)-4, 6) // three empty rows, and the keys
	happened := s.happened(m.picture.Happened)
	happened = happened[max(0, len(happened)-max(left/3, 3)):]
	left -= max(len(happened), 1)
	nodes := cut(s.nodes(m.picture.Nodes), max(left*2/3, 3), "nodes")
	rooms := cut(s.rooms(m.picture.Rooms, m.picture.Nodes), max(left-len(nodes), 2), "")
	if len(happened) == 0 {
		happened = []string{s.paint(tty.Dim, "Nothing has happened in the last 15 minutes.")}
	}
	rows = slices.Concat(rows, []string{""}, nodes, []string{""}, rooms, []string{""}, happened)
	for len(rows) < m.height-1 {
		rows = append(rows, "")
	}
	keys := "q quits   s sorts the rooms   arrows scroll them"
	if found := m.picture.Rooms.Found; found > 0 {
		keys += fmt.Sprintf("   from room %d of %d", m.question.offset+1, found)
	}
	rows = append(rows, s.paint(tty.Dim, keys))
	for i, row := range rows {
		rows[i] = ansi.Truncate(row, max(m.width, 20), "…")
	}
	return rows
}

// cut leaves out rows past most, and says how many of what.
func cut(rows []string, most int, what string) []string {
	if len(rows) <= most {
		return rows
	}
	if what == "" {
		return rows[:most]
	}
	return append(rows[:most-1:most-1], fmt.Sprintf("and %d more %s", len(rows)-most+1, what))
}
