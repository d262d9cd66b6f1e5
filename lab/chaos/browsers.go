package chaos

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/lab/browser"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// watchPage records, unknown to the page, the steps of its connections and when each remote picture was shown.
//
//go:embed watch.js
var watchPage string

type tab struct {
	room, name string
	page       *browser.Page
}

// account is what watch.js recorded, in Unix milliseconds.
type account struct {
	Joined  bool `json:"joined"`
	Live    bool `json:"live"`
	Moments []struct {
		Step  peer.Step `json:"step"`
		Epoch uint64    `json:"epoch"`
		At    float64   `json:"at"`
	} `json:"moments"`
	Frames []struct {
		Of string  `json:"of"`
		At float64 `json:"at"`
	} `json:"frames"`
}

func (c *crowd) browserRoom() string {
	if len(c.browsers) == 0 {
		return ""
	}
	return c.browsers[0].room
}

func (c *crowd) openBrowsers(ctx context.Context, nodes []ring.NodeID) error {
	room := roomOn(nodes, nodes[0], c.chaos.prefix()+"browsers")
	var opening errgroup.Group
	tabs := make([]*tab, c.chaos.options.Browsers)
	for i := range tabs {
		name := fmt.Sprintf("browser-%d", i+1)
		opening.Go(func() error {
			page, err := browser.Open(ctx, callAddress(c.chaos.page, room, name), watchPage, nil)
			if err != nil {
				return err
			}
			tabs[i] = &tab{room: room, name: name, page: page}
			return nil
		})
	}
	err := opening.Wait()
	c.browsers = slices.DeleteFunc(tabs, func(t *tab) bool { return t == nil }) // leave closes these
	if err != nil {
		return err
	}
	return poll(ctx, joinLimit, func() error {
		for _, t := range c.browsers {
			a, err := t.account(ctx, time.Now())
			if err != nil {
				return err
			}
			if !a.Joined {
				return fmt.Errorf("the page of %s has not joined", t.name)
			}
		}
		return nil
	})
}

// The picture is small: two cores encode several.
func callAddress(base, room, name string) string {
	q := url.Values{
		"room": {room}, "name": {name}, "autojoin": {"1"},
		"width": {"320"}, "height": {"180"}, "fps": {"15"}, "simulcast": {"0"}, "audio": {"4"}, "video": {"4"},
	}
	return strings.TrimSuffix(base, "/") + "/?" + q.Encode()
}

const askLimit = 10 * time.Second

func (t *tab) account(ctx context.Context, since time.Time) (account, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var a account
	err := t.page.Eval(ctx, fmt.Sprintf("globalThis.__account(%d)", since.UnixMilli()), &a)
	return a, err
}

// Only the page knows whose the pictures are.
func (t *tab) receipts(ctx context.Context, since time.Time, others int) []Receipt {
	a, _ := t.account(ctx, since) // no answer: nothing received
	fresh := make(map[string]bool)
	for _, f := range a.Frames {
		fresh[f.Of] = true
	}
	var all []Receipt
	for i := range others {
		all = append(all, Receipt{Flow{t.room, t.name, fmt.Sprintf("other %d", i+1), "picture"}, len(fresh) > i})
	}
	return all
}

func (t *tab) moved(ctx context.Context, since time.Time) bool {
	a, err := t.account(ctx, since)
	return err == nil && len(a.firsts()) > 0
}

// firsts returns each picture's first frame after the last answer, or after the page has heard of its standby. A frame decoded before and shown late does not count.
func (a account) firsts() map[string]float64 {
	answered := 0.0
	for _, m := range a.Moments {
		if m.Step == peer.StepAnswer || m.Step == peer.StepContinued {
			answered = m.At
		}
	}
	first := make(map[string]float64)
	if answered == 0 {
		return first
	}
	for _, f := range a.Frames {
		if at, known := first[f.Of]; f.At > answered && (!known || f.At < at) {
			first[f.Of] = f.At
		}
	}
	return first
}

func (t *tab) client(ctx context.Context, w *World, others int) Client {
	c := Client{Name: t.name, Room: t.room, Browser: true, Streams: others}
	a, err := t.account(ctx, w.first())
	if err != nil {
		return c
	}
	for _, m := range a.Moments {
		c.Moments = append(c.Moments, peer.Moment{Step: m.Step, At: unixMillis(m.At)})
		if m.Step == peer.StepRestart || m.Step == peer.StepContinued {
			c.Epochs = append(c.Epochs, m.Epoch)
		}
	}
	firsts := a.firsts()
	for _, of := range slices.Sorted(maps.Keys(firsts)) {
		c.Moments = append(c.Moments, peer.Moment{Step: peer.StepFirst, At: unixMillis(firsts[of]), Stream: peer.StreamID{Peer: wire.PeerID(of), Source: wire.SourceCamera}})
	}
	slices.SortStableFunc(c.Moments, func(a, b peer.Moment) int { return a.At.Compare(b.At) })
	return c
}

func unixMillis(ms float64) time.Time { return time.UnixMicro(int64(ms * 1000)) }
