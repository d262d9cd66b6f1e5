package transport

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net"
	"time"

	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

type checker struct {
	request, response stun.Message
}

// check answers a user who is served here and knows the password (RFC 8445 section 7.3); nobody else.
func (t *Transport) check(b []byte, from egress.Address, now time.Time, k *checker) {
	user := checkedUser(b)
	if user == nil {
		return
	}
	c := t.of(string(user))
	if c == nil {
		if h := t.heldBy(string(user)); h != nil {
			h.check(b, from, now, k)
		}
		return
	}
	if c.keyed != nil && from.Stream != nil {
		return
	}
	password, ok := c.password(string(user))
	if !ok || !c.mayCheck(from, now) {
		return
	}
	k.request.Reset()
	if _, err := k.request.Write(b); err != nil {
		return
	}
	integrity := stun.NewShortTermIntegrity(password)
	if integrity.Check(&k.request) != nil {
		return
	}
	if !t.admit(c, from, now) {
		t.log.Debug("check refused: the address is another client's", "from", from.String())
		return
	}
	if from.Stream != nil {
		from.Stream.Admit()
	}
	if c.keyed == nil {
		c.heardFrom(from, now)
	}
	if !t.respond(from, integrity, k) {
		return
	}
	said := said{user: string(user), nominates: k.request.Contains(stun.AttrUseCandidate), follows: k.request.Contains(stun.AttrICEControlled)}
	if back, wanted := c.checked(from, said, now); wanted {
		t.checkBack(back, string(user), k)
	}
}

// said is what a check says: whom it is for, that its sender nominates the address, and that it is the controlled end.
type said struct {
	user               string
	nominates, follows bool
}

// respond answers the check in k.request.
func (t *Transport) respond(to egress.Address, integrity stun.MessageIntegrity, k *checker) bool {
	mapped := &stun.XORMappedAddress{IP: net.IP(to.Addr().AsSlice()), Port: int(to.Port())}
	if err := k.response.Build(
		stun.NewTransactionIDSetter(k.request.TransactionID), stun.BindingSuccess, mapped, integrity, stun.Fingerprint,
	); err != nil {
		t.log.Debug("check not answered", "error", err)
		return false
	}
	_, err := t.socket.Write(k.response.Raw, to)
	return err == nil
}

// role is that of the node in a check (RFC 8445 section 6.1.1).
type role int

const (
	controlled role = iota
	// controlling makes the client the controlled end, because its tie-breaker cannot be higher (section 7.3.1.1).
	controlling
	// nominating is controlling, with USE-CANDIDATE.
	nominating
)

func (r role) AddTo(m *stun.Message) error {
	if r == controlled {
		m.Add(stun.AttrICEControlled, make([]byte, 8))
		return nil
	}
	m.Add(stun.AttrICEControlling, bytes.Repeat([]byte{255}, 8))
	if r == nominating {
		m.Add(stun.AttrUseCandidate, nil)
	}
	return nil
}

// checkBack sends a check, such as a triggered one (RFC 8445 section 7.3.1.4). Some clients nominate only after one.
func (t *Transport) checkBack(back checkBack, ours string, k *checker) {
	const usual = 1862270975
	if err := k.response.Build(
		stun.NewTransactionIDSetter(back.id), stun.BindingRequest, stun.NewUsername(back.remote.ufrag+":"+ours), back.role,
		stun.RawAttribute{Type: stun.AttrPriority, Value: binary.BigEndian.AppendUint32(nil, cmp.Or(back.priority, usual))},
		stun.NewShortTermIntegrity(back.remote.password), stun.Fingerprint,
	); err != nil {
		t.log.Debug("check not sent", "error", err)
		return
	}
	// A write that fails is like a lost packet.
	_, _ = t.socket.Write(k.response.Raw, back.to)
}

func (t *Transport) answer(b []byte, from egress.Address, now time.Time, k *checker) {
	c := t.at(from)
	if c == nil {
		return
	}
	k.request.Reset()
	if _, err := k.request.Write(b); err != nil {
		return
	}
	c.answered(from, now, k.request.TransactionID, func(password string) bool {
		return stun.NewShortTermIntegrity(password).Check(&k.request) == nil
	})
}

// Parts of a STUN message (RFC 8489 sections 5 and 14).
const (
	stunHeaderBytes    = 20
	stunCookie         = 0x2112A442
	stunBindingRequest = 0x0001
	stunBindingSuccess = 0x0101
	stunUsername       = 0x0006
)

// checkedUser returns the user fragment of this node in a check, as a part of the packet. It returns nil for every
// other packet.
func checkedUser(packet []byte) []byte {
	if len(packet) < stunHeaderBytes || binary.BigEndian.Uint16(packet) != stunBindingRequest ||
		binary.BigEndian.Uint32(packet[4:]) != stunCookie {
		return nil
	}
	attributes := packet[stunHeaderBytes:]
	length := int(binary.BigEndian.Uint16(packet[2:]))
	if length > len(attributes) {
		return nil
	}
	attributes = attributes[:length]
	for len(attributes) >= 4 {
		kind, size := binary.BigEndian.Uint16(attributes), int(binary.BigEndian.Uint16(attributes[2:]))
		attributes = attributes[4:]
		if size > len(attributes) {
			return nil
		}
		if kind == stunUsername {
			user, _, _ := bytes.Cut(attributes[:size], []byte{':'})
			return user
		}
		attributes = attributes[min((size+3)&^3, len(attributes)):]
	}
	return nil
}
