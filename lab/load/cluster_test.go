package load

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

const sfus = 3

func startCluster(t *testing.T, o devcluster.Options) *devcluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := devcluster.Start(ctx, o)
	if err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

func optionsFor(t *testing.T, c *devcluster.Cluster) Options {
	t.Helper()
	keys, err := access.ParseKeyring(c.Access().Key + ":" + c.Access().Secret)
	if err != nil {
		t.Fatal(err)
	}
	o := defaults()
	o.URL, o.Keys, o.Cluster = c.URL(), keys, c
	o.Rooms, o.Peers, o.Duration, o.Seed = 3, 3, 5*time.Second, 1
	return o
}

func run(ctx context.Context, t *testing.T, o Options) *Report {
	t.Helper()
	l, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	return r
}

// TestAClusterByIPv6 has no socket of another family: page, gossip, control, store and media.
func TestAClusterByIPv6(t *testing.T) {
	at := devcluster.Options{SFU: 1, Signaling: 2, Listen: "[::1]:0", Hosts: map[string]devcluster.Host{}}
	for _, name := range []string{"store", "sfu-1", "signaling-1", "signaling-2"} {
		at.Hosts[name] = devcluster.Host{IP: "::1"}
	}
	c := startCluster(t, at)
	status, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range status.Nodes {
		for kind, address := range node.Addresses {
			if !strings.HasPrefix(address, "[::1]:") {
				t.Errorf("%s has %s at %s", node.Name, kind, address)
			}
		}
	}
	o := optionsFor(t, c)
	o.Rooms, o.Room, o.Peers, o.Video, o.Duration = 1, "hall", 2, peer.VideoLight, 2*time.Second
	r := run(t.Context(), t, o)
	if r.People != (People{Wanted: 2, Joined: 2}) || r.Gaps.StreamsReceived != 4 || r.Restarts.Told != 0 {
		t.Errorf("%+v, streams %+v, restarts %+v", r.People, r.Gaps, r.Restarts)
	}
	if len(r.Rooms) != 1 || r.Rooms[0].Room != "hall" {
		t.Errorf("the rooms %+v", r.Rooms)
	}
	testkit.Within(t, 2*time.Minute, "every signaling node knows that clients reach the media", func() error {
		nodes, err := c.AdminNodes(t.Context())
		for _, node := range nodes {
			if node.Role == "sfu" && (len(node.MediaTold) != 1 || !strings.HasPrefix(node.MediaTold[0], "[::1]:") || node.MediaSilent != nil) {
				err = fmt.Errorf("told %v, silent %v", node.MediaTold, node.MediaSilent)
			}
		}
		return err
	})
}

// tinyLossPercent is what a busy machine may lose on loopback.
const tinyLossPercent = 0.5

func TestShortRuns(t *testing.T) {
	c := startCluster(t, devcluster.Options{SFU: sfus})
	for _, test := range []struct {
		video      peer.Video
		publishers int
		streams    int
	}{
		{peer.VideoLight, 0, 3 * 3 * 2 * 2},
		{peer.VideoSimulcast, 1, 3 * 2 * 2},
	} {
		t.Run(string(test.video), func(t *testing.T) {
			var progress strings.Builder
			o := optionsFor(t, c)
			o.Video, o.Publishers, o.Progress = test.video, test.publishers, &progress
			r := run(t.Context(), t, o)
			if r.People != (People{Wanted: 9, Joined: 9}) || len(r.Refusals) != 0 || r.OffersRejected != 0 || r.SocketsLost != 0 {
				t.Errorf("%+v, refusals %v, %d offers rejected, %d sockets lost", r.People, r.Refusals, r.OffersRejected, r.SocketsLost)
			}
			if r.Gaps.StreamsExpected != test.streams || r.Gaps.StreamsReceived != test.streams ||
				(r.Gaps.Silent != 0 && r.Generator.LongestDelayMs < silence.Seconds()*1000/2) { // else the machine itself stood still
				t.Errorf("streams: %+v, want %d", r.Gaps, test.streams)
			}
			if r.Loss.Expected == 0 || r.Loss.Percent > tinyLossPercent {
				t.Errorf("loss: %+v", r.Loss)
			}
			if r.Restarts.Told != 0 || len(r.Restarts.Rooms) != 0 {
				t.Errorf("restarts: %+v", r.Restarts)
			}
			if r.JoinMs.Count != 9 || r.JoinMs.P50 <= 0 || r.FirstMediaMs.Count < 3 || r.Bitrate.ReceivedBitsPerSecond <= 0 {
				t.Errorf("join %+v, first media %+v, bitrate %+v", r.JoinMs, r.FirstMediaMs, r.Bitrate)
			}
			if len(r.CPU) != sfus+4 || r.Generator.CPUSeconds == 0 { // two signaling nodes, the store and the front
				t.Errorf("CPU of %d processes: %+v", len(r.CPU), r.CPU)
			}
			if !strings.Contains(progress.String(), "joined 9/9") {
				t.Errorf("the progress was %q", progress.String())
			}
		})
	}
	t.Run("no media", func(t *testing.T) { noMedia(t, c) })
}

// noMedia: everybody joins, and nobody connects.
func noMedia(t *testing.T, c *devcluster.Cluster) {
	o := optionsFor(t, c)
	o.Video, o.Duration = peer.VideoNone, time.Second
	r := run(t.Context(), t, o)
	if r.People.Joined != 9 || len(r.Refusals) != 0 || r.Gaps.StreamsExpected != 0 || r.Bitrate.SentPacketsPerSecond+r.Bitrate.ReceivedPacketsPerSecond != 0 {
		t.Errorf("%+v, refusals %v, streams %+v, bitrate %+v", r.People, r.Refusals, r.Gaps, r.Bitrate)
	}
}
