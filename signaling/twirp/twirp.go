// Package twirp answers LiveKit's RoomService: the requests with which servers of applications make rooms, look into them and run them. Twirp
// is a POST for each method, with a protobuf message or its JSON.
//
// A token needs LiveKit's grants. What a method does, it does by signaling/moderation and signaling/door, as the HTTP API does: this package
// translates. Methods that Holdfast does not have are answered unimplemented, by name. Begin with Service.
package twirp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/door"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
)

// Prefix begins the path of every request.
const Prefix = "/twirp/"

const servicePath = Prefix + "livekit.RoomService/"

// maxBodyBytes bounds requests. The longest name the rooms of a list.
const maxBodyBytes = 64 << 10

// Store lists the rooms that applications have made, with the settings of their doors.
type Store interface {
	Described(ctx context.Context) (map[ring.RoomID]string, error)
}

// Deps is what a Service needs.
type Deps struct {
	Keys       *access.Keyring
	Store      Store
	Limits     *limits.Limits
	Moderation *moderation.Moderation
	Doors      *door.Doors
	// Recorder may be nil. Then nothing is recorded.
	Recorder *events.Recorder
	// TokenRefused hears why a request's token does not count. It may be nil.
	TokenRefused func(err error, what, remote string)
	Log          *slog.Logger
}

// Service is RoomService at one signaling node. It is an http.Handler.
type Service struct {
	deps    Deps
	methods map[string]method
}

// method answers one request. decode reads its body into a message.
type method func(ctx context.Context, grant access.Grant, decode func(proto.Message) error) (proto.Message, error)

// New returns a Service.
func New(deps Deps) *Service {
	s := &Service{deps: deps}
	s.methods = map[string]method{
		"CreateRoom":          on(s.createRoom),
		"ListRooms":           on(s.listRooms),
		"DeleteRoom":          on(s.deleteRoom),
		"ListParticipants":    on(s.listParticipants),
		"GetParticipant":      on(s.getParticipant),
		"RemoveParticipant":   on(s.removeParticipant),
		"MutePublishedTrack":  on(s.mutePublishedTrack),
		"UpdateParticipant":   on(s.updateParticipant),
		"UpdateRoomMetadata":  on(s.updateRoomMetadata),
		"SendData":            on(s.sendData),
		"UpdateSubscriptions": unimplemented("clients choose what they show"),
		"ForwardParticipant":  unimplemented("a person is in one room at a time"),
		"MoveParticipant":     unimplemented("a person joins another room with a token for it"),
		"PerformRpc":          unimplemented("applications' servers answer no methods of people here"),
	}
	return s
}

// on makes a method of a function with a request of its own type.
func on[Q any, M interface {
	*Q
	proto.Message
}, A proto.Message](answer func(context.Context, access.Grant, M) (A, error)) method {
	return func(ctx context.Context, grant access.Grant, decode func(proto.Message) error) (proto.Message, error) {
		request := M(new(Q))
		if err := decode(request); err != nil {
			return nil, err
		}
		return answer(ctx, grant, request)
	}
}

func unimplemented(why string) method {
	return func(context.Context, access.Grant, func(proto.Message) error) (proto.Message, error) {
		return nil, errorf(Unimplemented, "this method is not implemented: %s", why)
	}
}

// ServeHTTP answers a request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	answer, encode, err := s.serve(r)
	if err != nil {
		refuse(w, err)
		return
	}
	body, err := encode.marshal(answer)
	if err != nil {
		s.deps.Log.Error("an answer to a request of RoomService is not encoded", "path", r.URL.Path, "error", err)
		refuse(w, errorf(Internal, "the answer could not be encoded"))
		return
	}
	w.Header().Set("Content-Type", encode.mediaType)
	_, _ = w.Write(body)
}

func (s *Service) serve(r *http.Request) (proto.Message, encoding, error) {
	route := func(format string, args ...any) error {
		e := errorf(BadRoute, format, args...)
		e.Route = fmt.Sprintf("%.10s %.200s", r.Method, r.URL.Path)
		return e
	}
	name, ours := strings.CutPrefix(r.URL.Path, servicePath)
	answer, known := s.methods[name]
	if !ours || !known {
		return nil, encoding{}, route("no handler for path %.200q", r.URL.Path)
	}
	if r.Method != http.MethodPost {
		return nil, encoding{}, route("unsupported method %.20q (only POST is allowed)", r.Method)
	}
	given := r.Header.Get("Content-Type")
	mediaType, _, _ := mime.ParseMediaType(given)
	encode, known := encodings()[mediaType]
	if !known {
		return nil, encoding{}, route("unexpected Content-Type: %.100q", given)
	}
	grant, err := s.grantOf(r)
	if err != nil {
		return nil, encode, err
	}
	message, err := answer(r.Context(), grant, func(into proto.Message) error { return encode.read(r, into) })
	return message, encode, err
}

// grantOf reads the request's token, and has the reason logged if it is none of this deployment.
func (s *Service) grantOf(r *http.Request) (grant access.Grant, err error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	err = access.ErrMissing
	if ok {
		grant, err = s.deps.Keys.Verify(strings.TrimSpace(token))
	}
	if err == nil && grant.Check {
		err = access.ErrCheck
	}
	if err != nil && s.deps.TokenRefused != nil {
		s.deps.TokenRefused(err, "RoomService", r.RemoteAddr)
	}
	return grant, err
}

// encoding is how a request is written; its answer is written in the same way.
type encoding struct {
	mediaType string
	marshal   func(proto.Message) ([]byte, error)
	unmarshal func([]byte, proto.Message) error
}

// encodings are found by their media types. Names in JSON are those of the protobuf messages, and every field is there, as Twirp's servers
// write it; what this node does not know is left out, as newer SDKs may send it.
func encodings() map[string]encoding {
	const binary, text = "application/protobuf", "application/json"
	return map[string]encoding{
		binary: {binary, proto.Marshal, proto.Unmarshal},
		text: {
			text, protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal,
		},
	}
}

func (e encoding) read(r *http.Request, into proto.Message) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBodyBytes))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errorf(InvalidArgument, "the request has more than %d bytes; send less at once", tooLarge.Limit)
	}
	if err != nil {
		return errorf(Malformed, "the request did not arrive")
	}
	if err := e.unmarshal(body, into); err != nil {
		return errorf(Malformed, "the request could not be decoded as %s of a %s", e.mediaType, into.ProtoReflect().Descriptor().Name())
	}
	return nil
}

// roomAdmin returns the room of a request whose token runs it.
func (s *Service) roomAdmin(grant access.Grant, name string) (ring.RoomID, error) {
	room, err := access.CheckRoom(name)
	if err == nil {
		err = grant.ForRoomAdmin(room)
	}
	if err == nil && !s.deps.Limits.AskAboutRoom(room) {
		err = limits.ErrFlood
	}
	return room, err
}

// roomCreator returns the room of a request whose token may make it. A token that joins is a person's: its roomCreate lets the person open
// the room, and no more.
func (s *Service) roomCreator(grant access.Grant, name string) (ring.RoomID, error) {
	room, err := access.CheckRoom(name)
	switch {
	case err != nil:
		return "", err
	case !grant.RoomCreate || grant.RoomJoin || grant.Room != "" && grant.Room != room:
		return "", errNotCreator
	case !s.deps.Limits.AskAboutRoom(room):
		return "", limits.ErrFlood
	}
	return room, nil
}

var errNotCreator = errorf(Unauthenticated, "the token does not make or end rooms: that needs roomCreate, without roomJoin, and no other room's name")
