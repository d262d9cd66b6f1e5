package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// The first broken trials show why.
const maxEvidence = 12

// evidenceAfter is longer than any return without repair.
const evidenceAfter = 6 * time.Second

// Evidence is the media state that the cluster and the browsers reported at one moment.
type Evidence struct {
	Trial    int                        `json:"trial"`
	At       time.Time                  `json:"at"`
	Why      string                     `json:"why"`
	Rooms    json.RawMessage            `json:"rooms"`    // of the operator's API, with slots and tracks
	Browsers map[string]json.RawMessage `json:"browsers"` // by name: getStats, the last view and slot table
}

// Name returns its file's name.
func (e Evidence) Name(i int) string { return fmt.Sprintf("evidence-%02d-trial-%d.json", i+1, e.Trial) }

func (c *Chaos) keep(ctx context.Context, why string) {
	if len(c.evidence) == maxEvidence || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	e := Evidence{Trial: c.trialNumber, At: time.Now(), Why: why, Browsers: make(map[string]json.RawMessage)}
	if err := c.cluster.AdminAt(ctx, c.page, "rooms?media", &e.Rooms); err != nil {
		e.Rooms = saidInstead(err)
	}
	for _, t := range c.crowd.browsers {
		var said json.RawMessage
		if err := t.page.Eval(ctx, "globalThis.__evidence()", &said); err != nil {
			said = saidInstead(err)
		}
		e.Browsers[t.name] = said
	}
	c.evidence = append(c.evidence, e)
}

// brokenNow names the first broken verdict, if any.
func (c *Chaos) brokenNow(w *World) string {
	for _, v := range Judge(w) {
		if v.Outcome != Kept {
			return v.Name + ": " + v.first()
		}
	}
	return ""
}

func saidInstead(err error) json.RawMessage {
	text, _ := json.Marshal(map[string]string{"error": err.Error()}) // never fails
	return text
}
