package load

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// defaults are those of the command.
func defaults() Options {
	return Options{Rooms: 5, Peers: 4, JoinsPerSecond: 20, Duration: 30 * time.Second, Video: peer.VideoLight, Codec: portrait.VP8}
}
