package cascade

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

const (
	maxNameBytes = 256
	maxMedia     = 8
	maxUserBytes = 64
)

var (
	errNoName   = errors.New("it names no process of a media node")
	errNoUser   = errors.New("it has no credentials")
	errNoMedia  = errors.New("it names no media address, or more than 8")
	errNotMedia = errors.New("it names a media address that is none")
)

// end is another node's end of a trunk.
type end struct {
	credentials transport.Credentials
	media       []netip.AddrPort
}

// readEnd reads what another node tells of its end.
func readEnd(ufrag, password string, media []string) (end, error) {
	e := end{credentials: transport.Credentials{Ufrag: ufrag, Password: password}}
	if ufrag == "" || password == "" || len(ufrag) > maxUserBytes || len(password) > maxUserBytes {
		return end{}, errNoUser
	}
	if len(media) == 0 || len(media) > maxMedia {
		return end{}, errNoMedia
	}
	for _, text := range media {
		at, err := netip.ParseAddrPort(text)
		if err != nil || at.Port() == 0 || at.Addr().IsUnspecified() || at.Addr().IsMulticast() {
			return end{}, fmt.Errorf("%w: %.64q", errNotMedia, text)
		}
		e.media = append(e.media, at)
	}
	return e, nil
}

// readRequest reads the call of another node.
func readRequest(request *control.TrunkRequest) (from Peer, other end, keys transport.Keys, err error) {
	from = Peer{Node: ring.NodeID(request.GetFrom().GetNode()), Boot: pin.BootID(request.GetFrom().GetBoot()), Control: request.GetFrom().GetControl()}
	for _, name := range []string{string(from.Node), string(from.Boot), from.Control} {
		if name == "" || len(name) > maxNameBytes {
			return Peer{}, end{}, transport.Keys{}, errNoName
		}
	}
	if other, err = readEnd(request.GetUfrag(), request.GetPassword(), request.GetMedia()); err != nil {
		return Peer{}, end{}, transport.Keys{}, err
	}
	if keys, err = transport.ParseKeys(request.GetKeys()); err != nil {
		return Peer{}, end{}, transport.Keys{}, err
	}
	return from, other, keys, nil
}
