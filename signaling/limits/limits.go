// Package limits bounds how often a person, an API key, an address, a room or a media node does each thing that costs a
// signaling node, its store or the media nodes something.
//
// Limits has one method for each act. A method that returns false or an error refuses the act; the caller says so to the
// client. Quotas, which an operator configures, are in quota.go; the other rates are constants above their methods, with the
// arithmetic that justifies them. A refused act costs a map access under a mutex and nothing else.
//
// All limits count on one signaling node and start anew with its process. Only people with a good token choose keys.
package limits

import (
	"net/netip"

	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A limiter remembers as many keys as a node has sockets, and lets further keys pass. A key costs some 200 bytes, so that
// a full limiter costs 4 MB.
const rememberedKeys = 20_000

// Person is who acts.
type Person struct {
	Room     ring.RoomID // empty for a session in no room
	Key      string      // the API key that signed the token
	Identity string
	Address  netip.Prefix // invalid: its address has no limits
}

// InRoom is the person's name among all rooms, whatever key signed the token.
func (p Person) InRoom() string { return string(p.Room) + "\x00" + p.Identity }

// Everywhere is the person's name in all rooms together.
func (p Person) Everywhere() string { return p.Key + "\x00" + p.Identity }

// Config has the bounds that a node may change.
type Config struct {
	Quotas         Quotas
	Entries        Rate // of one person, into one room
	Openings       Rate // of one identity
	AddressWatches Rate
	Owners         Rate // of one room
}

// DefaultConfig is the binary's.
func DefaultConfig() Config {
	return Config{
		Quotas: defaultQuotas(),
		// A dropped socket keeps its place in the room for 30 s. One person thus has at most 20 + 30 s * 2/s = 80 places of
		// a room of 300.
		Entries: Rate{PerSecond: 2, Burst: 20},
		// A reservation lasts 10 s. One identity thus holds at most 4 + 10 s * 0.2/s = 6 reservations.
		Openings: Rate{PerSecond: 0.2, Burst: 4},
		// The people of an address may all come back at once: as many as the address may join.
		AddressWatches: Rate{PerSecond: 50, Burst: 1000},
		// A media node's answer also writes the roster to the store: at most once in 3 s for a room.
		Owners: Rate{PerSecond: 0.3, Burst: 1},
	}
}

// Limits is safe for concurrent use.
type Limits struct {
	quotas [3]account // identity, API key, address

	// By person and room.
	attempts, entries, chats, expressions, acts, unmutes, doors *connlimit.KeyedLimiter
	// By person in all rooms.
	openings, tests, directs, watches *connlimit.KeyedLimiter
	// By address.
	addressWatches *connlimit.KeyedLimiter
	// By room.
	roomQuestions, owners *connlimit.KeyedLimiter
	// By node.
	collections *connlimit.KeyedLimiter
}

// New has counted nothing yet.
func New(c Config) *Limits {
	return &Limits{
		quotas: [3]account{
			newAccount("identity", c.Quotas.Identity), newAccount("API key", c.Quotas.Key), newAccount("address", c.Quotas.Address),
		},
		attempts:       limiter(attemptsPerSecond, attemptBurst),
		entries:        c.Entries.limiter(),
		chats:          limiter(chatPerSecond, ChatBurst),
		expressions:    limiter(expressionsPerSecond, expressionBurst),
		acts:           limiter(actsPerSecond, actBurst),
		unmutes:        limiter(unmutesPerSecond, unmuteBurst),
		doors:          limiter(doorsPerSecond, doorBurst),
		openings:       c.Openings.limiter(),
		tests:          limiter(testsPerSecond, TestBurst),
		directs:        limiter(directsPerSecond, DirectBurst),
		watches:        limiter(watchesPerSecond, WatchBurst),
		addressWatches: c.AddressWatches.limiter(),
		roomQuestions:  limiter(roomQuestionsPerSecond, RoomQuestionBurst),
		owners:         c.Owners.limiter(),
		collections:    connlimit.NewKeyedLimiter(collectionsPerSecond, CollectionBurst, collectingNodes),
	}
}

func limiter(perSecond float64, burst int) *connlimit.KeyedLimiter {
	return connlimit.NewKeyedLimiter(perSecond, burst, rememberedKeys)
}

func (r Rate) limiter() *connlimit.KeyedLimiter {
	if r == (Rate{}) {
		return limiter(float64(rate.Inf), 0)
	}
	return limiter(r.PerSecond, r.Burst)
}

// A client that waits for the store comes five times a second: eight leave room for a reload beside it. The burst lets several
// tabs of one person come back at once when a node dies.
const attemptsPerSecond, attemptBurst = 8, 40

// Attempt counts a join or resume before the store is asked.
func (l *Limits) Attempt(p Person) bool { return l.attempts.Allow(p.InRoom()) }

// Enter counts a join or resume that takes a place in a room. See Config.Entries.
func (l *Limits) Enter(p Person) bool { return l.entries.Allow(p.InRoom()) }

// Reserve counts a placement that may reserve egress on a node. See Config.Openings. Beyond it the room is placed without a
// reservation.
func (l *Limits) Reserve(p Person) bool { return l.openings.Allow(p.Identity) }

// A pasted list comes as a few lines at once; nobody types five lines a second.
const (
	chatPerSecond = 5
	// ChatBurst is how many lines of chat a person may send at once.
	ChatBurst = 10
)

// Chat counts a line of the room's chat, in all tabs of a person.
func (l *Limits) Chat(p Person) bool { return l.chats.Allow(p.InRoom()) }

// Everybody in the room is told of each. A media node, which limits peers, allows twice as much.
const expressionsPerSecond, expressionBurst = 2, 6

// Express counts a raised or lowered hand, and a reaction.
func (l *Limits) Express(p Person) bool { return l.expressions.Allow(p.InRoom()) }

// One click for each person of a list of 30.
const actsPerSecond, actBurst = 5, 30

// Moderate counts what a moderator does to a person.
func (l *Limits) Moderate(p Person) bool { return l.acts.Allow(p.InRoom()) }

// Each request disturbs a person. Ten at once are enough for a panel.
const unmutesPerSecond, unmuteBurst = 0.5, 10

// AskUnmute counts a moderator's request to unmute, which Moderate counts too.
func (l *Limits) AskUnmute(p Person) bool { return l.unmutes.Allow(p.InRoom()) }

// A moderator's page reads the door every few seconds; 20 at once are as many people let in by single clicks.
const doorsPerSecond, doorBurst = 5, 20

// Door counts what a moderator asks or does at the room's door.
func (l *Limits) Door(p Person) bool { return l.doors.Allow(p.InRoom()) }

// Each connection test opens a room. A person who changes networks tests a few times in a row; later one every 10 s.
const (
	testsPerSecond = 0.1
	// TestBurst is how many connection tests a person may begin at once.
	TestBurst = 5
)

// TestConnection counts a token for a connection test.
func (l *Limits) TestConnection(p Person) bool { return l.tests.Allow(p.Everywhere()) }

// A message to many counts for each receiver: a message to wire.MaxReceivers (50) passes at once, and the next such message
// after 5 s.
const (
	directsPerSecond = 10
	// DirectBurst is how many receivers a person may send direct messages to at once.
	DirectBurst = 60
)

// Direct counts a direct message to one receiver.
func (l *Limits) Direct(p Person) bool { return l.directs.Allow(p.Everywhere()) }

// Pages that scroll change whom they watch, and each change may ask the store about wire.MaxWatched (500) users: at most
// 500 users a second for a person.
const (
	watchesPerSecond = 1
	// WatchBurst is how often a person may change the watched users at once.
	WatchBurst = 10
)

// Watch counts a change of whom a person watches, for the person and for the address. See Config.AddressWatches.
func (l *Limits) Watch(p Person) bool {
	return l.watches.Allow(p.Everywhere()) && (!p.Address.IsValid() || l.addressWatches.Allow(p.Address.String()))
}

// Each question goes to every media node or reads the store. Five open pages of a room's admins may ask once a second each.
const (
	roomQuestionsPerSecond = 5
	// RoomQuestionBurst is how many questions about one room its admins may ask at once.
	RoomQuestionBurst = 50
)

// AskAboutRoom counts a REST request of a room's admins, all of them together.
func (l *Limits) AskAboutRoom(room ring.RoomID) bool { return l.roomQuestions.Allow(string(room)) }

// ReadRoster counts a REST request for a roster, by whom no cluster token entitles.
func (l *Limits) ReadRoster(identity string) bool { return l.roomQuestions.Allow("roster " + identity) }

// SendNotice counts a REST request for a message, by whom no cluster token entitles.
func (l *Limits) SendNotice(identity string) bool {
	return l.roomQuestions.Allow("message " + identity)
}

// AskOwner counts a question to a media node for a roster that people wait for. See Config.Owners.
func (l *Limits) AskOwner(room ring.RoomID) bool { return l.owners.Allow(string(room)) }

// A collection takes all cores of the node. A cluster has fewer nodes than collectingNodes.
const (
	collectionsPerSecond = 1
	// CollectionBurst is how many collections of one node may be asked for at once.
	CollectionBurst = 5
	collectingNodes = 1024
)

// Collect counts a collection of garbage on a node.
func (l *Limits) Collect(node ring.NodeID) bool { return l.collections.Allow(string(node)) }
