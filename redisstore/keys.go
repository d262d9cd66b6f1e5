package redisstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	roomInfix = ":room:{"
	pinSuffix = "}:node"
	noteInfix = "}:note:"

	rosterSuffix   = "}:roster"
	leftSuffix     = "}:left"
	admittedSuffix = "}:admitted"
	doorSuffix     = "}:door"
	historySuffix  = "}:history"

	markerName = ":generation"
	bootInfix  = ":boot:{"
)

type keyspace string

var errNotAKey = errors.New("not a key of this store")

func (k keyspace) pin(room ring.RoomID) string {
	return string(k) + roomInfix + escape(string(room)) + pinSuffix
}

// note escapes the name of the note, so that no note's key looks like a pin's.
func (k keyspace) note(room ring.RoomID, name string) string {
	return string(k) + roomInfix + escape(string(room)) + noteInfix + escape(name)
}

func (k keyspace) roster(room ring.RoomID) string {
	return string(k) + roomInfix + escape(string(room)) + rosterSuffix
}

func (k keyspace) rosterKeys(room ring.RoomID) []string {
	of := string(k) + roomInfix + escape(string(room))
	return []string{of + pinSuffix, of + rosterSuffix, of + leftSuffix, of + admittedSuffix, of + doorSuffix}
}

func (k keyspace) door(room ring.RoomID) string {
	return string(k) + roomInfix + escape(string(room)) + doorSuffix
}

// described is one key, of the rooms that applications have described.
func (k keyspace) described() string { return string(k) + ":{described}" }

// events is one key. Its markers share its slot.
func (k keyspace) events() string { return string(k) + ":{events}" }

// hooks is a key of the sender of webhooks. All of them share a slot.
func (k keyspace) hooks(name string) string { return string(k) + ":{webhooks}:" + name }

// webhookKeys are pin, roster, what receivers were told, the facts that wait, and the history.
func (k keyspace) webhookKeys(room ring.RoomID) []string {
	of := string(k) + roomInfix + escape(string(room))
	return []string{of + pinSuffix, of + rosterSuffix, of + "}:told", of + "}:facts", of + historySuffix}
}

func (k keyspace) boot(name string) string { return string(k) + bootInfix + escape(name) + "}" }

func (k keyspace) history(room ring.RoomID) string {
	return string(k) + roomInfix + escape(string(room)) + historySuffix
}

func (k keyspace) waitingKeys(room ring.RoomID) []string {
	of := string(k) + roomInfix + escape(string(room))
	return []string{of + pinSuffix, of + rosterSuffix, of + doorSuffix, of + admittedSuffix, of + "}:line", of + "}:waiting", of + "}:names"}
}

func (k keyspace) pins() string { return string(k) + roomInfix + "*" + pinSuffix }

// room is the reverse of pin.
func (k keyspace) room(key string) (ring.RoomID, error) {
	tag, ok := strings.CutPrefix(key, string(k)+roomInfix)
	if ok {
		tag, ok = strings.CutSuffix(tag, pinSuffix)
	}
	if !ok {
		return "", fmt.Errorf("%w: %q", errNotAKey, key)
	}
	id, err := unescape(tag)
	return ring.RoomID(id), err
}

// escape replaces braces, which would end the hash tag and spread a room over two slots. The empty id becomes "%".
func escape(id string) string {
	if id == "" {
		return "%"
	}
	if !strings.ContainsAny(id, "{}%") {
		return id
	}
	return strings.NewReplacer("{", "%7B", "}", "%7D", "%", "%25").Replace(id)
}

func unescape(tag string) (string, error) {
	if tag == "%" {
		return "", nil
	}
	id := tag
	if strings.Contains(tag, "%") {
		id = strings.NewReplacer("%7B", "{", "%7D", "}", "%25", "%").Replace(tag)
	}
	if escape(id) != tag {
		return "", fmt.Errorf("%w: tag %q", errNotAKey, tag)
	}
	return id, nil
}
