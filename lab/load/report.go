package load

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/measure"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// ReportVersion grows when a field changes its name or meaning, not when fields are added.
const ReportVersion = 3

// Report is a run's result. Bytes are of RTP packets with headers, without SRTP, UDP and IP.
type Report struct {
	Version        int        `json:"version"`
	Parameters     Parameters `json:"parameters"`
	Began          time.Time  `json:"began"`
	ElapsedSeconds float64    `json:"elapsedSeconds"`
	Interrupted    bool       `json:"interrupted"`
	People         People     `json:"people"`

	JoinMs       measure.Distribution `json:"joinMs"`       // from opening the first socket to `joined`
	FirstMediaMs measure.Distribution `json:"firstMediaMs"` // to the first packet of another, for those who found somebody there
	Gaps         Gaps                 `json:"gaps"`
	Loss         Loss                 `json:"loss"`
	Bitrate      Bitrate              `json:"bitrate"`
	Restarts     Restarts             `json:"restarts"`

	Refusals       map[wire.Code]int `json:"refusals"` // every error of the server
	OffersRejected int               `json:"offersRejected"`
	SocketsLost    int               `json:"socketsLost"`
	Resumes        int               `json:"resumes"`

	CPU       []ProcessCPU `json:"cpu"` // of the cluster's processes on this machine
	Generator Generator    `json:"generator"`
	Rooms     []Room       `json:"rooms"`
}

// Parameters are the options of the run.
type Parameters struct {
	URL             string     `json:"url"`
	Rooms           int        `json:"rooms"`
	PeersPerRoom    int        `json:"peersPerRoom"`
	Publishers      int        `json:"publishersPerRoom"`
	Video           peer.Video `json:"video"`
	JoinsPerSecond  float64    `json:"joinsPerSecond"`
	DurationSeconds float64    `json:"durationSeconds"`
	Seed            uint64     `json:"seed"`
}

// People counts who was wanted, joined, or was refused for good.
type People struct {
	Wanted  int `json:"wanted"`
	Joined  int `json:"joined"`
	Refused int `json:"refused"`
}

// Gaps are the longest times without a packet, for each stream and receiver.
type Gaps struct {
	AudioMs measure.Distribution `json:"audioMs"`
	VideoMs measure.Distribution `json:"videoMs"`
	// StreamsExpected is what all people together should receive at a time, StreamsReceived how many of these brought a packet,
	// StreamsDifferent how many did at any time, as speakers change. Silent are shown streams without a packet in the last 3 s.
	StreamsExpected  int `json:"streamsExpected"`
	StreamsReceived  int `json:"streamsReceived"`
	StreamsDifferent int `json:"streamsDifferent"`
	Silent           int `json:"silentAtEnd"`
}

// Loss is counted from all slots' sequence numbers.
type Loss struct {
	Expected   uint64  `json:"expected"`
	Lost       uint64  `json:"lost"`
	Percent    float64 `json:"percent"`
	Recovered  uint64  `json:"recovered"` // by retransmission; not lost
	Late       uint64  `json:"late"`      // out of order; not lost
	Duplicates uint64  `json:"duplicates"`
}

// Bitrate is over the window: from when everybody was in to the end.
type Bitrate struct {
	WindowSeconds            float64 `json:"windowSeconds"`
	SentBitsPerSecond        float64 `json:"sentBitsPerSecond"`
	ReceivedBitsPerSecond    float64 `json:"receivedBitsPerSecond"`
	SentPacketsPerSecond     float64 `json:"sentPacketsPerSecond"`
	ReceivedPacketsPerSecond float64 `json:"receivedPacketsPerSecond"`
}

// Restarts are the moves of rooms. A gap is between the last packet of the old connection and the first of the new one.
type Restarts struct {
	Told       int                  `json:"peopleTold"` // a person told twice counts twice
	Rooms      []string             `json:"rooms"`
	AudioGapMs measure.Distribution `json:"audioGapMs"`
	VideoGapMs measure.Distribution `json:"videoGapMs"`
	NotBack    int                  `json:"streamsNotBack"`
}

// ProcessCPU is the CPU time of one process of the cluster.
type ProcessCPU struct {
	Process    string  `json:"process"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Cores      float64 `json:"cores"` // mean of the run
}

// Generator is the cost and the punctuality of the run itself.
type Generator struct {
	ProcessCPU

	LongestDelayMs float64 `json:"longestDelayMs"` // of a frame
	FramesLeftOut  uint64  `json:"framesLeftOut"`  // more than 200 ms late
}

// Room is where one room was.
type Room struct {
	Room      string      `json:"room"`
	FirstNode ring.NodeID `json:"firstNode"`
	LastNode  ring.NodeID `json:"lastNode"`
	Joined    int         `json:"joined"`
	Restarts  int         `json:"restarts"` // the most that one person was told
}

// silence is how long a stream without a packet is not called silent.
const silence = 3 * time.Second

func (l *Load) report(lives []life, at totals, end time.Time, interrupted bool) *Report {
	o := l.options
	r := &Report{
		Version: ReportVersion, Began: l.began.UTC().Truncate(time.Millisecond), Interrupted: interrupted,
		ElapsedSeconds: measure.Round1(end.Sub(l.began).Seconds()),
		Parameters: Parameters{
			URL: o.URL, Rooms: o.Rooms, PeersPerRoom: o.Peers, Publishers: o.publishers(), Video: o.Video,
			JoinsPerSecond: o.JoinsPerSecond, DurationSeconds: o.Duration.Seconds(), Seed: o.Seed,
		},
		People:   People{Wanted: len(lives)},
		Refusals: map[wire.Code]int{},
		Restarts: Restarts{Rooms: []string{}},
		CPU:      []ProcessCPU{},
	}
	var sum tally
	for _, one := range lives {
		sum.add(r, one, end)
	}
	sum.finish(r, o, lives)
	r.Bitrate = bitrate(l.atWindow, at, end.Sub(l.window))
	return r
}

func bitrate(from, to totals, window time.Duration) Bitrate {
	seconds := window.Seconds()
	if seconds <= 0 {
		return Bitrate{}
	}
	rate := func(from, to uint64, each float64) float64 { return measure.Round1(float64(to-from) * each / seconds) }
	return Bitrate{
		WindowSeconds:            measure.Round1(seconds),
		SentBitsPerSecond:        rate(from.sent.Bytes, to.sent.Bytes, 8),
		ReceivedBitsPerSecond:    rate(from.received.Bytes, to.received.Bytes, 8),
		SentPacketsPerSecond:     rate(from.sent.Packets, to.sent.Packets, 1),
		ReceivedPacketsPerSecond: rate(from.received.Packets, to.received.Packets, 1),
	}
}

func roomsOf(o Options, lives []life) []Room {
	byName := map[string]*Room{}
	for _, one := range lives {
		room := byName[one.room]
		if room == nil {
			room = &Room{Room: one.room}
			byName[one.room] = room
		}
		if !one.stats.Joined {
			continue
		}
		room.Joined++
		room.Restarts = max(room.Restarts, len(one.stats.Restarts))
		if room.FirstNode == "" {
			room.FirstNode = one.firstNode
		}
		room.LastNode = one.stats.Node
	}
	rooms := make([]Room, 0, len(byName))
	for i := range o.Rooms {
		if room := byName[o.roomName(i)]; room != nil {
			rooms = append(rooms, *room)
		}
	}
	return rooms
}

func moved(rooms []Room) []string {
	names := []string{}
	for _, room := range rooms {
		if room.Restarts > 0 {
			names = append(names, room.Room)
		}
	}
	slices.Sort(names)
	return names
}
