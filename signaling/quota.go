package signaling

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

// Quotas bound an identity, API key or address on this node, over all rooms.
type Quotas struct {
	Identity, Key, Address Quota
}

// Quota has no bound where it is zero.
type Quota struct {
	Joins   Rate // joins and resumes
	Rooms   Rate // into empty rooms
	Offers  Rate
	Sockets int // with a session, at once
}

// Rate is an average and a burst.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Far above what people do, far below what hurts.
func defaultQuotas() Quotas {
	return Quotas{
		// Many tabs, or an application that calls each room's doctor "doctor".
		Identity: Quota{Joins: Rate{10, 100}, Rooms: Rate{1, 20}, Offers: Rate{10, 100}, Sockets: 200},
		// One key would bound the whole node.
		Key: Quota{},
		// A university comes back at once when a signaling node dies.
		Address: Quota{Joins: Rate{50, 1000}, Rooms: Rate{5, 200}, Offers: Rate{100, 2000}, Sockets: 2000},
	}
}

// Set reads "joins=5:50,sockets=off", PERSECOND:BURST. Unnamed bounds stay; "off" alone lifts all.
func (q *Quota) Set(text string) error {
	if strings.TrimSpace(text) == "off" {
		*q = Quota{}
		return nil
	}
	rates := map[string]*Rate{"joins": &q.Joins, "rooms": &q.Rooms, "offers": &q.Offers}
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, value, _ := strings.Cut(entry, "=")
		var err error
		switch {
		case name == "sockets":
			q.Sockets, err = parseCount(value)
		case rates[name] != nil:
			*rates[name], err = parseRate(value)
		default:
			err = errors.New("it names none of joins, rooms, offers and sockets")
		}
		if err != nil {
			return fmt.Errorf("%q: %w; write joins=10:100 (10 a second, 100 at once), sockets=200, or off", entry, err)
		}
	}
	return nil
}

func parseCount(text string) (int, error) {
	if text == "off" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, errors.New("the number must be 1 or more")
	}
	return n, nil
}

func parseRate(text string) (Rate, error) {
	if text == "off" {
		return Rate{}, nil
	}
	often, atOnce, _ := strings.Cut(text, ":")
	perSecond, err := strconv.ParseFloat(often, 64)
	if err != nil || !(perSecond > 0 && perSecond <= 1e6) {
		return Rate{}, errors.New("so many a second must be more than 0, and a million at most")
	}
	burst, err := strconv.Atoi(atOnce)
	if err != nil || burst < 1 {
		return Rate{}, errors.New("so many at once must be 1 or more")
	}
	return Rate{PerSecond: perSecond, Burst: burst}, nil
}

type quotaError struct{ what, whose string }

func (e *quotaError) Error() string { return "too many " + e.what + " of this " + e.whose }

// spender is whose quotas a session spends; empty fields do not count.
type spender struct{ identity, key, address string }

type meter struct{ identity, key, address account }

type account struct {
	whose                string
	joins, rooms, offers *connlimit.KeyedLimiter
	sockets              *connlimit.KeyedCounter
}

func newMeter(q Quotas) *meter {
	account := func(whose string, q Quota) account {
		return account{
			whose: whose, joins: q.Joins.limiter(), rooms: q.Rooms.limiter(), offers: q.Offers.limiter(),
			sockets: connlimit.NewKeyedCounter(q.Sockets),
		}
	}
	return &meter{identity: account("identity", q.Identity), key: account("API key", q.Key), address: account("address", q.Address)}
}

func (r Rate) limiter() *connlimit.KeyedLimiter {
	if r == (Rate{}) {
		return connlimit.NewKeyedLimiter(float64(rate.Inf), 0, 0)
	}
	return connlimit.NewKeyedLimiter(r.PerSecond, r.Burst, rememberedEntries)
}

// each calls do for the spender's accounts, and returns the first that fails.
func (m *meter) each(s spender, do func(a *account, key string) bool) *account {
	for _, row := range []struct {
		account *account
		key     string
	}{{&m.identity, s.identity}, {&m.key, s.key}, {&m.address, s.address}} {
		if row.key != "" && !do(row.account, row.key) {
			return row.account
		}
	}
	return nil
}

// enter counts a join and its socket; after success leave must follow.
func (m *meter) enter(s spender) error {
	if full := m.each(s, func(a *account, key string) bool { return a.joins.Allow(key) }); full != nil {
		return &quotaError{"joins", full.whose}
	}
	full := m.each(s, func(a *account, key string) bool { return a.sockets.Take(key) })
	if full == nil {
		return nil
	}
	m.each(s, func(a *account, key string) bool {
		if a == full {
			return false
		}
		a.sockets.Give(key)
		return true
	})
	return &quotaError{"sockets", full.whose}
}

func (m *meter) leave(s spender) {
	m.each(s, func(a *account, key string) bool { a.sockets.Give(key); return true })
}

// open counts a new room; reopen undoes it.
func (m *meter) open(s spender) error {
	full := m.each(s, func(a *account, key string) bool { return a.rooms.Allow(key) })
	if full == nil {
		return nil
	}
	m.each(s, func(a *account, key string) bool {
		if a != full {
			a.rooms.Return(key)
		}
		return a != full
	})
	return &quotaError{"new rooms", full.whose}
}

func (m *meter) reopen(s spender) {
	m.each(s, func(a *account, key string) bool { a.rooms.Return(key); return true })
}

func (m *meter) offer(s spender) error {
	if full := m.each(s, func(a *account, key string) bool { return a.offers.Allow(key) }); full != nil {
		return &quotaError{"offers", full.whose}
	}
	return nil
}
