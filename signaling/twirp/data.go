package twirp

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/twirp/twirppb"
)

// maxDataBytes bounds a message of an application to people in a room, with what is around it, as those of people.
const maxDataBytes = 16 << 10

// sendData sends a message over the data channels of people in a room. Who has none at this moment misses it.
func (s *Service) sendData(ctx context.Context, grant access.Grant, q *twirppb.SendDataRequest) (*twirppb.SendDataResponse, error) {
	room, err := s.roomAdmin(grant, q.GetRoom())
	if err != nil {
		return nil, err
	}
	packet, err := proto.Marshal(&livekitpb.DataPacket{
		Kind: q.GetKind(), DestinationIdentities: q.GetDestinationIdentities(), User: &livekitpb.UserPacket{
			Payload: q.GetData(), Topic: q.Topic, DestinationSids: q.GetDestinationSids(), DestinationIdentities: q.GetDestinationIdentities(), Nonce: q.GetNonce(),
		},
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("encode message: %w", err)
	case len(packet) > maxDataBytes:
		return nil, errorf(InvalidArgument, "the message has %d bytes, with whom it is for, at most %d", len(packet), maxDataBytes)
	}
	message := &control.Data{
		Room: string(room), Lossy: q.GetKind() == livekitpb.DataPacket_LOSSY, Packet: packet, Identities: q.GetDestinationIdentities(), Sids: q.GetDestinationSids(),
	}
	held, unreachable := moderation.AskNodes(ctx, s.deps.Moderation, "data", func(ctx context.Context, _ cluster.Node, client control.MediaClient) ([]bool, error) {
		reply, err := client.SendData(ctx, message)
		if !reply.GetHeld() {
			return nil, err
		}
		return []bool{true}, err
	})
	switch {
	case len(held) > 0:
		return &twirppb.SendDataResponse{}, nil
	case len(unreachable) > 0:
		return nil, errorf(Unavailable, "%d media nodes did not answer and may have the room: try again in a moment", len(unreachable))
	}
	return nil, errNoRoom
}
