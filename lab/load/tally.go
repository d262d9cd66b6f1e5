package load

import (
	"math"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// tally collects the samples of a report, person by person.
type tally struct {
	join, firstMedia     sample
	audioGap, videoGap   sample
	audioMove, videoMove sample
	loss                 peer.Loss
}

// add counts one person.
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
		r.Gaps.StreamsReceived++
		gaps.Add(stream.GapUntil(end))
		if stream.Shown && stream.Connection < connection {
			r.Restarts.NotBack++
		}
	}
	if stream.Shown && end.Sub(later(stream.Last, stream.Since)) > silence {
		r.Gaps.Silent++
	}
	for _, gap := range stream.Moves {
		moves.Add(gap)
	}
}

// finish puts the samples and sums into the report.
func (t *tally) finish(r *Report, o Options, lives []life) {
	r.JoinMs, r.FirstMediaMs = t.join.Distribution(), t.firstMedia.Distribution()
	r.Gaps.AudioMs, r.Gaps.VideoMs = t.audioGap.Distribution(), t.videoGap.Distribution()
	r.Restarts.AudioGapMs, r.Restarts.VideoGapMs = t.audioMove.Distribution(), t.videoMove.Distribution()
	r.Gaps.StreamsExpected = streamsExpected(o, lives)
	r.Loss = Loss{
		Expected: t.loss.Expected, Lost: t.loss.Lost(), Recovered: t.loss.Recovered, Late: t.loss.Late, Duplicates: t.loss.Duplicates,
	}
	if t.loss.Expected > 0 {
		// Four digits: a single packet must show in a short run.
		r.Loss.Percent = math.Round(float64(t.loss.Lost())/float64(t.loss.Expected)*1e6) / 1e4
	}
	r.Rooms = roomsOf(o, lives)
	r.Restarts.Rooms = moved(r.Rooms)
}

// streamsExpected counts the streams that those who joined should receive of
// each other, as far as there are slots.
func streamsExpected(o Options, lives []life) int {
	publishing := map[string]int{}
	for _, one := range lives {
		if one.publishes && one.stats.Joined {
			publishing[one.room]++
		}
	}
	audio, video := o.slots()
	if o.Video == peer.VideoOff {
		video = 0
	}
	expected := 0
	for _, one := range lives {
		if !one.stats.Joined {
			continue
		}
		others := publishing[one.room]
		if one.publishes {
			others--
		}
		expected += min(others, audio) + min(others, video)
	}
	return expected
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
