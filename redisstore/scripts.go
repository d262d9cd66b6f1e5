package redisstore

import (
	_ "embed"
	"strings"
)

// The Lua sources, one file a script. Each file says what its script does and returns.
var (
	//go:embed lua/swap_pin.lua
	swapPin string
	//go:embed lua/note_claim.lua
	noteClaim string
	//go:embed lua/begin_boot.lua
	beginBoot string
	//go:embed lua/begin_incarnation.lua
	beginIncarnation string
	//go:embed lua/write_roster.lua
	writeRoster string
	//go:embed lua/presence_shared.lua
	presenceShared string
	//go:embed lua/presence_add.lua
	presenceAdd string
	//go:embed lua/presence_remove.lua
	presenceRemove string
	//go:embed lua/presence_sweep.lua
	presenceSweep string
	//go:embed lua/presence_renew.lua
	presenceRenew string
	//go:embed lua/presence_ask.lua
	presenceAsk string
	//go:embed lua/presence_follow.lua
	presenceFollow string
	//go:embed lua/append_events.lua
	appendEvents string
	//go:embed lua/webhook_follow.lua
	webhookFollow string
	//go:embed lua/webhook_sent.lua
	webhookSent string
	//go:embed lua/webhook_lead.lua
	webhookLead string
	//go:embed lua/webhook_mark.lua
	webhookMark string
	//go:embed lua/webhook_forget.lua
	webhookForget string
	//go:embed lua/waiting_shared.lua
	waitingShared string
	//go:embed lua/waiting_enter.lua
	waitingEnter string
	//go:embed lua/waiting_check_in.lua
	waitingCheckIn string
	//go:embed lua/waiting_door.lua
	waitingDoor string
)

// The scripts as they are sent, with their keys and arguments in order.
//
//nolint:gochecknoglobals // each text is composed once, because it is sent with every call
var (
	// KEYS = pin, roster, door, history. ARGV = old text, new text (empty: delete the pin), the pin's seconds to live, the
	// latest time of a write in microseconds (0: none), the text that stands for a key of another type, seconds to live of
	// the last owner's roster, the change for the history, the last index that the history keeps, its seconds to live.
	swapScript = compose(swapPin)

	// KEYS = pin, history. ARGV = the claimed pin, the change for the history, the last index that the history keeps, its
	// seconds to live.
	claimScript = compose(noteClaim)

	// KEYS = the boot of a name. ARGV = the least time to return, and how long the key outlives the time in it; in milliseconds.
	bootScript = compose(beginBoot)

	// KEYS = marker, which in a Redis Cluster is in a slot of the master's: see markerRank. ARGV = "<run id>.", a nonce,
	// the marker's seconds to live.
	renewScript = compose(beginIncarnation)

	// KEYS = pin, roster, left, admitted, door. ARGV = the writer's pin, Change.Seq, Change.After (0: the whole roster; -1:
	// the whole of a settled one), the roster's seconds to live, Change.Door, and the number of peers that are put. Then
	// for each peer that is put, and for each that is dropped: its id, "<identity>\n" (after another "\n" if hidden), its
	// name, and in milliseconds its age or the time since it was last seen.
	rosterScript = compose(writeRoster)

	// The scripts of presence work on one shard: see people/presence/DESIGN.md. Those that begin with presenceShared have
	// KEYS = head, leases, users, seen, log, gone and ARGV[1] = the TTL in milliseconds.

	// ARGV[2...] = user, connection, room, since in milliseconds, for each lease.
	addScript = compose(presenceShared, presenceAdd)
	// ARGV[2...] = leases.
	removeScript = compose(presenceShared, presenceRemove)
	// ARGV[2...] = the least time between sweeps, and the longest after which leases are believed, in milliseconds.
	sweepScript = compose(presenceShared, presenceSweep)
	// KEYS = leases. ARGV = leases.
	heartbeatScript = compose(presenceRenew)
	// KEYS = head, users, seen. ARGV = users.
	askScript = compose(presenceAsk)
	// KEYS = head, log. ARGV = the cursor's birth and version.
	followScript = compose(presenceFollow)

	// KEYS = the events, a marker for each new one. ARGV = how many events are kept, for how long in milliseconds, then for each
	// marker its seconds to live and the event's text.
	appendEventsScript = compose(appendEvents)

	// KEYS = keyspace.webhookKeys. ARGV = the writer's pin (empty: a sender looks), 1 if all peers are compared, the sid of a room that begins,
	// how many facts wait at most, seconds to live, 1 if the room has ended, the number of peers that were put. Then for each of those its id and sources, and for each
	// that was dropped its id and row.
	webhookFollowScript = compose(webhookFollow)
	// KEYS = told, facts. ARGV = the receiver, the position of its last fact, seconds to live, all receivers.
	webhookSentScript = compose(webhookSent)
	// KEYS = wanted, lease. ARGV = the sender, the life of its lease in milliseconds (0: give it back), seconds to live of wanted.
	webhookLeadScript = compose(webhookLead)
	// KEYS = rooms. ARGV = the rooms to mark, or to forget.
	webhookMarkScript   = compose(webhookMark)
	webhookForgetScript = compose(webhookForget)

	// The scripts of a waiting line have KEYS = pin, roster, door, admitted, line, waiting, names. ARGV[1] is "<cap of the token
	// (-1: none)> <cap of the server (0: none)>". ARGV[2] is a pin under which nobody is in the room, or empty. ARGV[3] is 1 if
	// nobody of an earlier owner can come, 2 if its node is dead, too, else 0.

	// ARGV[4...] = identity, Ticket, Wait, Hold in milliseconds, new pin, its seconds to live, the text that stands for a key of
	// another type, Host, name, peer.
	enterScript = compose(waitingShared, waitingEnter)
	// ARGV[4...] = identities that wait at the node.
	checkInScript = compose(waitingShared, waitingCheckIn)
	// ARGV[4...] = deed, identity, cap and closed (empty: as before), how many to list, peer (of a release), description (empty: as before).
	doorScript = compose(waitingShared, waitingDoor)
)

// compose makes one script of its parts. It leaves out comments and indentation, because EVAL sends the text with every
// call; EVALSHA would cost another round trip after each restart of the store. The store keeps nothing that depends on
// a text, so nodes of two versions may send two.
func compose(parts ...string) string {
	var text strings.Builder
	for _, part := range parts {
		for line := range strings.Lines(part) {
			code := strings.TrimSpace(line)
			if code == "" || strings.HasPrefix(code, "--") {
				continue
			}
			text.WriteString(code)
			text.WriteByte('\n')
		}
	}
	return text.String()
}
