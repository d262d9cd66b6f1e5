package load

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

const sfus = 3

func startCluster(t *testing.T) *devcluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := devcluster.Start(ctx, devcluster.Options{SFU: sfus})
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

// tinyLossPercent is what a busy machine may lose on loopback.
const tinyLossPercent = 0.5

func TestShortRuns(t *testing.T) {
	c := startCluster(t)
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
