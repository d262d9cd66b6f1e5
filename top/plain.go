package top

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/tty"
)

// summaryEvery is how soon a change of load is worth a line. Changes of nodes, rooms and people are told at once.
const summaryEvery = 10 * time.Second

// printPlain prints the whole picture, and then a line for each event and for each change.
func printPlain(ctx context.Context, o Options, f *feed, p Picture) error {
	s := screen{paint: tty.Paint(tty.Colors(o.Out)), sorted: usualQuestion().sort}
	rows := append(s.head(p.Overview), "")
	rows = append(append(rows, s.nodes(p.Nodes)...), "")
	rows = append(append(rows, s.rooms(p.Rooms, p.Nodes)...), "")
	if err := printRows(o, append(rows, s.happened(p.Happened)...)); err != nil {
		return err
	}
	said, told, before := "", time.Now(), p
	for backoff.Sleep(ctx, o.Every) {
		next, err := f.next(ctx, usualQuestion())
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if text := "no answer: " + err.Error(); text != said {
				said = text
				if err := printRows(o, []string{stamp(time.Now()) + "  " + said}); err != nil {
					return err
				}
			}
			continue
		}
		rows := s.happened(newer(before.Happened, next.Happened))
		changed := said != "" || len(rows) > 0 || next.Overview.Rooms != before.Overview.Rooms || next.Overview.Peers != before.Overview.Peers
		if changed || time.Since(told) >= summaryEvery && summary(next) != summary(before) {
			rows = append(rows, stamp(next.Overview.At)+"  "+summary(next))
			said, told, before = "", time.Now(), next
		}
		if err := printRows(o, rows); err != nil {
			return err
		}
	}
	return nil
}

// newer are the lines that were not there before.
func newer(before, now []events.Line) []events.Line {
	known := map[string]bool{}
	key := func(l events.Line) string { return l.At.String() + l.Text }
	for _, line := range before {
		known[key(line)] = true
	}
	var fresh []events.Line
	for _, line := range now {
		if !known[key(line)] {
			fresh = append(fresh, line)
		}
	}
	return fresh
}

func printRows(o Options, rows []string) error {
	for _, row := range rows {
		if _, err := fmt.Fprintln(o.Out, row); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}

// printJSON prints a picture a line. An answer that fails ends it, since a program cannot be told otherwise.
func printJSON(ctx context.Context, o Options, f *feed, p Picture) error {
	for {
		line, err := json.Marshal(p)
		if err != nil {
			return fmt.Errorf("encode a picture: %w", err)
		}
		if err := printRows(o, []string{string(line)}); err != nil {
			return err
		}
		if !backoff.Sleep(ctx, o.Every) {
			return nil
		}
		if p, err = f.next(ctx, usualQuestion()); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}
