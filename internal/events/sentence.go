package events

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Sentence says in words what happened, without the time.
func (e Event) Sentence() string {
	switch e.Kind {
	case NodeUp:
		return fmt.Sprintf("%s is up%s", e.Node, clause(" (version %s)", e.Version))
	case NodeDown:
		return fmt.Sprintf("%s died%s", e.Node, clause(" (%s)", e.Cause))
	case NodeBack:
		return fmt.Sprintf("%s is back: it was frozen or cut off, not dead", e.Node)
	case NodeLeft:
		return fmt.Sprintf("%s left", e.Node)
	case NodeDrains:
		return fmt.Sprintf("%s drains%s", e.Node, clause(", ordered by %s", e.By))
	case NodeUndrains:
		return fmt.Sprintf("%s no longer drains%s", e.Node, clause(", ordered by %s", e.By))
	case RoomOpened:
		return fmt.Sprintf("%s: opened on %s", e.Room, e.Node)
	case RoomRehomed, RoomMoved:
		return fmt.Sprintf("%s: %s -> %s%s", e.Room, e.From, e.To, clause(" (%s)", e.Cause))
	case RoomBack:
		gap := time.Duration(e.WorstGapMillis) * time.Millisecond
		if e.Peers == 0 {
			return fmt.Sprintf("%s: %d more back at %s, after %.2f s", e.Room, e.Back, e.Node, gap.Seconds())
		}
		return fmt.Sprintf("%s: %d of %d back at %s, worst gap %.2f s", e.Room, e.Back, e.Peers, e.Node, gap.Seconds())
	case RoomSpread:
		return fmt.Sprintf("%s: %s carries some of its people now%s", e.Room, e.To, clause(" (%s)", e.Cause))
	case RoomGathered:
		return fmt.Sprintf("%s: the people at %s are gathered%s", e.Room, e.From, clause(" (%s)", e.Cause))
	case BranchPromoted:
		return fmt.Sprintf("%s: its branch %s, with %d people, holds it now%s", e.Room, e.Node, e.Peers, clause(", after %s", string(e.From)))
	case RoomClosed:
		return fmt.Sprintf("%s: closed on %s", e.Room, e.Node)
	case MoveOrdered:
		return fmt.Sprintf("%s: a move%s was ordered%s", e.Room, clause(" to %s", string(e.To)), clause(" by %s", e.By))
	case PersonRemoved:
		return fmt.Sprintf("%s: somebody was removed%s", e.Room, clause(" by %s", e.By))
	case CallEnded:
		return fmt.Sprintf("%s: the call was ended%s", e.Room, clause(" by %s", e.By))
	case DoorChanged:
		return fmt.Sprintf("%s: the door is %s%s", e.Room, e.Cause, clause(", by %s", e.By))
	case NodeKilled:
		return fmt.Sprintf("%s was killed%s", e.Node, clause(" by %s", e.By))
	case StoreBack:
		return fmt.Sprintf("the store answers %s again%s", e.Node, clause(" (%s)", e.Cause))
	case WebhookLost:
		return fmt.Sprintf("%s: %d webhooks were given up%s", e.Room, e.Peers, clause(" (%s)", e.Cause))
	case LimitReached:
		return fmt.Sprintf("%s reached a limit%s", cmp.Or(string(e.Room), string(e.Node), "the cluster"), clause(" (%s)", e.Cause))
	// A later version has written this kind.
	default:
		return strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Kind, e.Room, e.Node))
	}
}

// clause returns the text in its format, or nothing if there is no text.
func clause(format, text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf(format, text)
}
