package relay

import (
	"errors"
	"strings"

	"github.com/pion/stun/v4"
)

// CheckURL says why browsers refuse the URL of a STUN or TURN server (RFC 7064, 7065), and which of both it is of.
func CheckURL(url string) (isTURN bool, err error) {
	uri, err := stun.ParseURI(url)
	switch {
	case errors.Is(err, stun.ErrSTUNQuery):
		return false, errors.New("leave out the query: a STUN server has none")
	case errors.Is(err, stun.ErrInvalidQuery), errors.Is(err, stun.ErrProtoType):
		return false, errors.New("leave out the query, or give ?transport=udp or ?transport=tcp")
	case errors.Is(err, stun.ErrPort), err == nil && (uri.Port < 1 || uri.Port > 65535):
		return false, errors.New("give a port of 1 to 65535")
	case err != nil, strings.ContainsAny(url, "/@#"):
		return false, errors.New("give a URL such as turn:turn.example.org:3478?transport=tcp")
	}
	return uri.Scheme == stun.SchemeTypeTURN || uri.Scheme == stun.SchemeTypeTURNS, nil
}
