package limits

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Quotas bound an identity, an API key and an address on this node, over all rooms.
type Quotas struct {
	Identity, Key, Address Quota
}

// Quota bounds one identity, API key or address. A zero field is no bound.
type Quota struct {
	Joins   Rate // joins and resumes
	Rooms   Rate // joins into empty rooms
	Offers  Rate
	Sockets int // sockets with a session, at the same time
}

// Rate is an average and a burst.
type Rate struct {
	PerSecond float64
	Burst     int
}

// The defaults are far above what people do, and far below what hurts a node.
func defaultQuotas() Quotas {
	return Quotas{
		// A person has many tabs; an application may give everybody in a role the same identity, such as "doctor".
		Identity: Quota{Joins: Rate{10, 100}, Rooms: Rate{1, 20}, Offers: Rate{10, 100}, Sockets: 200},
		// Most deployments have a single key, whose quota would bound the whole node.
		Key: Quota{},
		// A university's people share one address, and come back at once when a signaling node dies.
		Address: Quota{Joins: Rate{50, 1000}, Rooms: Rate{5, 200}, Offers: Rate{100, 2000}, Sockets: 2000},
	}
}

// Set reads a text such as "joins=5:50,sockets=off"; a rate is PERSECOND:BURST. Bounds that the text does not name stay.
// The text "off" lifts all bounds.
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

// QuotaError says which quota is spent.
type QuotaError struct{ What, Whose string }

func (e *QuotaError) Error() string { return "too many " + e.What + " of this " + e.Whose }

// Fault returns what a client hears of the quota.
func (e *QuotaError) Fault() *fault.Fault {
	return fault.New(wire.CodeTooManySockets, e.Error(), "Wait a moment, then try again.")
}

// account counts for all identities, all API keys or all addresses.
type account struct {
	whose                string
	joins, rooms, offers *connlimit.KeyedLimiter
	sockets              *connlimit.KeyedCounter
}

func newAccount(whose string, q Quota) account {
	return account{
		whose: whose, joins: q.Joins.limiter(), rooms: q.Rooms.limiter(), offers: q.Offers.limiter(),
		sockets: connlimit.NewKeyedCounter(q.Sockets),
	}
}

// each calls do for the person's accounts, and returns the first for which do is false. A person without an address has no
// account of an address.
func (l *Limits) each(p Person, do func(a *account, key string) bool) *account {
	keys := [len(l.quotas)]string{p.Everywhere(), p.Key, ""}
	if p.Address.IsValid() {
		keys[2] = p.Address.String()
	}
	for i, key := range keys {
		if a := &l.quotas[i]; key != "" && !do(a, key) {
			return a
		}
	}
	return nil
}

// Join counts a join and its socket. Leave must follow a success.
func (l *Limits) Join(p Person) error {
	if full := l.each(p, func(a *account, key string) bool { return a.joins.Allow(key) }); full != nil {
		return &QuotaError{"joins", full.whose}
	}
	full := l.each(p, func(a *account, key string) bool { return a.sockets.Take(key) })
	if full == nil {
		return nil
	}
	// What was taken before the full account is given back.
	l.each(p, func(a *account, key string) bool {
		if a == full {
			return false
		}
		a.sockets.Give(key)
		return true
	})
	return &QuotaError{"sockets", full.whose}
}

// Leave gives the socket of a Join back.
func (l *Limits) Leave(p Person) {
	l.each(p, func(a *account, key string) bool { a.sockets.Give(key); return true })
}

// OpenRoom counts a room that a join opens.
func (l *Limits) OpenRoom(p Person) error {
	full := l.each(p, func(a *account, key string) bool { return a.rooms.Allow(key) })
	if full == nil {
		return nil
	}
	l.each(p, func(a *account, key string) bool {
		if a != full {
			a.rooms.Return(key)
		}
		return a != full
	})
	return &QuotaError{"new rooms", full.whose}
}

// ReturnRoom undoes an OpenRoom whose room was open already.
func (l *Limits) ReturnRoom(p Person) {
	l.each(p, func(a *account, key string) bool { a.rooms.Return(key); return true })
}

// Offer counts an SDP offer.
func (l *Limits) Offer(p Person) error {
	if full := l.each(p, func(a *account, key string) bool { return a.offers.Allow(key) }); full != nil {
		return &QuotaError{"offers", full.whose}
	}
	return nil
}

// What somebody hears who goes past a limit.
var (
	// ErrFlood refuses one message, or one request.
	ErrFlood = fault.Coded(wire.CodeTooManyMessages, "too many messages")
	// ErrTooOften refuses a session or a connection test.
	ErrTooOften = fault.New(wire.CodeTooManySockets, "this identity joins too often", "Wait a moment, then try again.")
)
