package forward

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/rtptime"
)

// talker sends sound and pictures over one path. Nothing of its sound is recorded between deafFrom and deafTo, and its timestamps stand still then.
type talker struct {
	deafFrom, deafTo   time.Duration
	blindToo           bool                                   // nor of its pictures
	path               func(sent time.Duration) time.Duration // how long a packet travels
	hoardFrom, hoardTo time.Duration                          // what is recorded between is sent at the end
}

// arrival is a packet, or a report, of the talker.
type arrival struct {
	sent, at  time.Duration
	kind      Kind
	report    bool
	sequence  uint16
	timestamp uint32
}

const talk = 30 * time.Second

// arrivals are in the order of a path that lets nothing overtake.
func (k *talker) arrivals() (all []arrival) {
	random := rand.New(rand.NewPCG(1, 2))
	deaf := func(at time.Duration) bool { return at >= k.deafFrom && at < k.deafTo }
	sound, sight := arrival{kind: KindAudio, timestamp: 1000}, arrival{kind: KindVideo}
	var recorded time.Duration
	for at := time.Duration(0); at < talk; at += 20 * time.Millisecond {
		sound.sent = at
		if !deaf(at) {
			sound.sequence++
			sound.timestamp += 960
			recorded = at
			all = append(all, sound)
		}
		if at%(5*time.Second) == 0 { // it reckons on from the last sound
			report := sound
			report.report, report.timestamp = true, sound.timestamp+rtptime.Ticks(at-recorded, 48000)
			all = append(all, report)
		}
		if at%(60*time.Millisecond) == 0 && (!k.blindToo || !deaf(at)) {
			sight.sent, sight.timestamp = at, rtptime.Ticks(at, 90000)
			sight.sequence++
			all = append(all, sight)
		}
		if at%time.Second == 0 {
			report := sight
			report.sent, report.report, report.timestamp = at, true, rtptime.Ticks(at, 90000)
			all = append(all, report)
		}
	}
	var last time.Duration
	for i := range all {
		jitter := time.Duration(random.Int64N(int64(15 * time.Millisecond)))
		all[i].at = max(all[i].sent+k.path(all[i].sent)+jitter, last)
		last = all[i].at
	}
	for i := range all {
		if a := &all[i]; a.kind == KindAudio && !a.report && a.sent >= k.hoardFrom && a.sent < k.hoardTo {
			a.at = max(a.at, k.hoardTo+k.path(k.hoardTo))
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	return all
}

// play calls see with how much later sound is told to have been sampled than the picture of the same moment.
func (k *talker) play(t *testing.T, see func(at, apart time.Duration)) {
	h := newByHand(t)
	sound, sight := h.slot("1", KindAudio, opus), h.slot("2", KindVideo, vp8)
	mic, cam := h.layer(SourceMicrophone, "", opus), h.layer(SourceCamera, "", vp8)
	begun := time.Now()
	var beyond [2]float64
	for _, a := range k.arrivals() {
		l, v, rate, of := mic, sound, 48000.0, 0
		if a.kind == KindVideo {
			l, v, rate, of = cam, sight, 90000.0, 1
		}
		now := begun.Add(a.at)
		if a.report {
			h.report(l, a.timestamp, begun.Add(a.sent), now)
			continue
		}
		h.push(l, a.sequence, a.timestamp, now)
		packets := v.take()
		if len(packets) != 1 {
			t.Fatalf("%d packets were forwarded, want 1", len(packets))
		}
		r := v.slot.senderReport(now)
		told := float64(r.NTPTime)/(1<<32) + float64(int32(packets[0].Timestamp-r.RTPTime))/rate
		beyond[of] = told - begun.Add(a.sent).Sub(time.Unix(-rtptime.NTPEpochOffset, 0)).Seconds()
		see(a.at, time.Duration((beyond[0]-beyond[1])*float64(time.Second)))
	}
}

// TestSoundStaysInStepWithThePicture: what was sampled together is told together, half a second after sound whose timestamps stood still
// is back, and at any time where only the path stood.
func TestSoundStaysInStepWithThePicture(t *testing.T) {
	steady := func(time.Duration) time.Duration { return 20 * time.Millisecond }
	standing := func(from, to time.Duration) func(time.Duration) time.Duration {
		return func(sent time.Duration) time.Duration {
			if sent < from || sent >= to {
				return steady(sent)
			}
			return to - sent
		}
	}
	from := 7300 * time.Millisecond
	for name, k := range map[string]*talker{
		"nothing":       {path: steady},
		"half a second": {deafFrom: from, deafTo: from + 500*time.Millisecond, path: steady},
		"3 s":           {deafFrom: from, deafTo: from + 3*time.Second, path: steady},
		"6 s":           {deafFrom: from, deafTo: from + 6*time.Second, path: steady},
		"12 s":          {deafFrom: from, deafTo: from + 12*time.Second, path: steady},
		"a busy browser that loses sound": {
			deafFrom: from, deafTo: from + 300*time.Millisecond, blindToo: true, path: steady,
		},
		"a busy browser that sends sound late": {hoardFrom: from, hoardTo: from + 300*time.Millisecond, path: steady},
		"a path that stands":                   {path: standing(from, from+1500*time.Millisecond)},
		"a path that stands while the sound begins": {
			deafFrom: from, deafTo: from + 3*time.Second, path: standing(from+2900*time.Millisecond, from+3200*time.Millisecond),
		},
		"a queue that grows and goes": {path: func(sent time.Duration) time.Duration {
			return steady(sent) + max(0, min((sent-from)/2, (from+4*time.Second-sent)/2))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			worst, when := time.Duration(0), time.Duration(0)
			k.play(t, func(at, apart time.Duration) {
				if at > time.Second && (at < k.deafFrom || at > k.deafTo+500*time.Millisecond) && apart.Abs() > worst.Abs() {
					worst, when = apart, at
				}
			})
			if worst.Abs() > 90*time.Millisecond {
				t.Errorf("sound and picture of one moment are told to be %v apart, at %v", worst, when)
			}
		})
	}
}

// TestSoundWithoutAPictureFollowsItsReports: nothing but the publisher's own report tells that the timestamps stood still. From then on they are told right,
// in one step, as a camera may be turned on.
func TestSoundWithoutAPictureFollowsItsReports(t *testing.T) {
	h := newByHand(t)
	sound, mic := h.slot("1", KindAudio, opus), h.layer(SourceMicrophone, "", opus)
	begun := time.Now()
	h.report(mic, 1000, begun, begun)
	h.push(mic, 1, 1000, begun)
	before := sound.slot.senderReport(begun)
	later := begun.Add(6 * time.Second)
	h.report(mic, 1000+960, later, later)
	h.push(mic, 2, 1000+960, later)
	after := sound.slot.senderReport(later)
	if went := after.RTPTime - before.RTPTime; went != 6*48000 {
		t.Errorf("in 6 s the timestamps told go on by %d, want %d", went, 6*48000)
	}
	if p := sound.take(); len(p) != 2 || p[1].Timestamp-p[0].Timestamp != 6*48000 {
		t.Errorf("%d packets, the last with the timestamp of the report before", len(p))
	}
}

// TestALatePacketFromBeforeAMute keeps the timestamp that it would have had.
func TestALatePacketFromBeforeAMute(t *testing.T) {
	h := newByHand(t)
	sound, mic, cam := h.slot("1", KindAudio, opus), h.layer(SourceMicrophone, "", opus), h.layer(SourceCamera, "", vp8)
	begun := time.Now()
	h.report(cam, 1000, begun, begun)
	h.push(mic, 1, 1000, begun)
	later := begun.Add(6 * time.Second)
	h.report(cam, 1000+6*90000, later, later)
	h.push(mic, 3, 1000+2*960, later)
	h.push(mic, 2, 1000+960, later)
	var went []uint32
	packets := sound.take()
	for _, p := range packets {
		went = append(went, p.Timestamp-packets[0].Timestamp)
	}
	if want := []uint32{0, 6 * 48000, 960}; !slices.Equal(went, want) {
		t.Errorf("the timestamps go on by %d, want %d", went, want)
	}
}
