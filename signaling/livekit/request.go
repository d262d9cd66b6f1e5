package livekit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
)

// MaxRequestBytes bounds a join request once it is decompressed. An offer with 64 media sections has about 150 KiB.
const MaxRequestBytes = 256 << 10

var errRequest = errors.New("the join request cannot be read")

// ReadQuery reads the query of a client with two connections, which has no join_request.
func ReadQuery(query url.Values) *livekitpb.JoinRequest {
	on := func(key string) bool { return query.Get(key) == "1" || query.Get(key) == "true" }
	return &livekitpb.JoinRequest{
		ConnectionSettings: &livekitpb.ConnectionSettings{AutoSubscribe: !query.Has("auto_subscribe") || on("auto_subscribe"), AdaptiveStream: on("adaptive_stream")},
		Reconnect:          on("reconnect"),
	}
}

// ReadRequest reads the join_request of a query: base64 of a WrappedJoinRequest, which usually is compressed.
func ReadRequest(text string) (*livekitpb.JoinRequest, error) {
	if text == "" {
		return nil, fmt.Errorf("%w: the query has no join_request", errRequest)
	}
	// Clients use both alphabets, with and without padding.
	text = strings.NewReplacer("+", "-", "/", "_", " ", "-").Replace(strings.TrimRight(text, "="))
	packed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	var wrapped livekitpb.WrappedJoinRequest
	if err := proto.Unmarshal(packed, &wrapped); err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	plain := wrapped.GetJoinRequest()
	if wrapped.GetCompression() == livekitpb.WrappedJoinRequest_GZIP {
		if plain, err = decompress(plain); err != nil {
			return nil, fmt.Errorf("%w: %w", errRequest, err)
		}
	}
	request := &livekitpb.JoinRequest{}
	if err := proto.Unmarshal(plain, request); err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	return request, nil
}

// decompress reads at most MaxRequestBytes, whatever the compressed form says of its length.
func decompress(packed []byte) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(reader, MaxRequestBytes+1))
	if err != nil {
		return nil, err
	}
	if len(plain) > MaxRequestBytes {
		return nil, fmt.Errorf("it has more than %d bytes once decompressed", MaxRequestBytes)
	}
	return plain, nil
}
