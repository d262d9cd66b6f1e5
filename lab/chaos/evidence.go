package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// maxEvidence bounds what is kept of a run; the first broken trials show why.
const maxEvidence = 12

// evidenceAfter is longer than any return that needs no repair.
const evidenceAfter = 6 * time.Second

// Evidence is what the cluster and the browsers reported of their media at one moment.
type Evidence struct {
	Trial    int                        `json:"trial"`
	At       time.Time                  `json:"at"`
	Why      string                     `json:"why"`
	Rooms    json.RawMessage            `json:"rooms"`    // as the operator's API tells it, with each slot's and track's state
	Browsers map[string]json.RawMessage `json:"browsers"` // getStats of each connection, the last view and slot table, by name
}

// Name is the name of the file it is kept in.
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

// brokenNow names the first broken verdict; empty if there is none.
func (c *Chaos) brokenNow(w *World) string {
	for _, v := range Judge(w) {
		if v.Outcome != Kept {
			return v.Name + ": " + v.first()
		}
	}
	return ""
}

func saidInstead(err error) json.RawMessage {
	text, _ := json.Marshal(map[string]string{"error": err.Error()}) // a string always can
	return text
}
