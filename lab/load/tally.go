package load

import (
	"math"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/measure"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

type tally struct {
	join, firstMedia     measure.Sample
	audioGap, videoGap   measure.Sample
	audioMove, videoMove measure.Sample
	loss                 peer.Loss
}

func (t *tally) add(r *Report, one life, end time.Time) {
	s := one.stats
	if one.gone != nil {
		r.People.Refused++
	}
	for code, n := range s.Codes {
		r.Refusals[code] += n
	}
	r.OffersRejected += s.OffersRejected
	r.SocketsLost += s.SocketsLost
	r.Resumes += s.Resumes
	r.Restarts.Told += len(s.Restarts)
	r.Generator.LongestDelayMs = max(r.Generator.LongestDelayMs, measure.Milliseconds(s.SendLag))
	r.Generator.FramesLeftOut += s.FramesLeftOut
	t.loss.Add(s.Loss)
	if !s.Joined {
		return
	}
	r.People.Joined++
	t.join.Add(s.JoinedAt.Sub(s.Began))
	if s.FoundThere > 0 && !s.FirstMedia.IsZero() {
		t.firstMedia.Add(s.FirstMedia.Sub(s.Began))
	}
	for id, stream := range s.Streams {
		t.addStream(r, id, stream, s.Connections, end)
	}
}

func (t *tally) addStream(r *Report, id peer.StreamID, stream peer.Stream, connection int, end time.Time) {
	gaps, moves := &t.videoGap, &t.videoMove
	if id.Source == wire.SourceMicrophone {
		gaps, moves = &t.audioGap, &t.audioMove
	}
	if stream.Packets > 0 {
		r.Gaps.StreamsDifferent++
		gaps.Add(stream.GapUntil(end))
		if stream.Shown && stream.Connection < connection {
			r.Restarts.NotBack++
		}
	}
	if stream.Shown && end.Sub(stream.SilentSince()) > silence {
		r.Gaps.Silent++
	}
	for _, gap := range stream.Moves {
		moves.Add(gap)
	}
}

func (t *tally) finish(r *Report, o Options, lives []life) {
	r.JoinMs, r.FirstMediaMs = t.join.Distribution(), t.firstMedia.Distribution()
	r.Gaps.AudioMs, r.Gaps.VideoMs = t.audioGap.Distribution(), t.videoGap.Distribution()
	r.Restarts.AudioGapMs, r.Restarts.VideoGapMs = t.audioMove.Distribution(), t.videoMove.Distribution()
	r.Gaps.StreamsExpected, r.Gaps.StreamsReceived = streams(o, lives)
	r.Loss = Loss{
		Expected: t.loss.Expected, Lost: t.loss.Lost(), Recovered: t.loss.Recovered, Late: t.loss.Late, Duplicates: t.loss.Duplicates,
	}
	if t.loss.Expected > 0 {
		// A single packet must show in a short run.
		r.Loss.Percent = math.Round(float64(t.loss.Lost())/float64(t.loss.Expected)*1e6) / 1e4
	}
	r.Rooms = roomsOf(o, lives)
	r.Restarts.Rooms = moved(r.Rooms)
}

// streams counts what those who joined should receive of each other at a time, and did. With more speakers than slots
// a person may receive more over the run.
func streams(o Options, lives []life) (expected, received int) {
	publishing := map[string]int{}
	for _, one := range lives {
		if one.publishes && one.stats.Joined {
			publishing[one.room]++
		}
	}
	audio, video := o.slots()
	switch o.Video {
	case peer.VideoOff:
		video = 0
	case peer.VideoNone:
		return 0, 0
	case peer.VideoLight, peer.VideoSparse, peer.VideoPortrait, peer.VideoSimulcast:
	}
	for _, one := range lives {
		if !one.stats.Joined {
			continue
		}
		others := publishing[one.room]
		if one.publishes {
			others--
		}
		sounds, pictures := heard(one.stats.Streams)
		expected += min(others, audio) + min(others, video)
		received += min(others, audio, sounds) + min(others, video, pictures)
	}
	return expected, received
}

func heard(all map[peer.StreamID]peer.Stream) (sounds, pictures int) {
	for id, stream := range all {
		switch {
		case stream.Packets == 0:
		case id.Source == wire.SourceMicrophone:
			sounds++
		default:
			pictures++
		}
	}
	return sounds, pictures
}
