package devcluster

import (
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// A development cluster's keys die with it.
const tokenLife = 24 * time.Hour

func (a Access) adminToken() (string, error) {
	return access.Mint(a.Key, a.Secret, access.Operator("operator"), tokenLife)
}

// JoinToken allows to join, publish and subscribe.
func (a Access) JoinToken(room, name string) (string, error) {
	grant := access.Everything(name, ring.RoomID(room))
	grant.Name = name
	return access.Mint(a.Key, a.Secret, grant, tokenLife)
}

func (a Access) messengerToken(room, name string, people int) (string, error) {
	grant := access.Everything(name, ring.RoomID(room))
	grant.Name, grant.MaxParticipants, grant.CanMessage = name, people, true
	return access.Mint(a.Key, a.Secret, grant, tokenLife)
}
