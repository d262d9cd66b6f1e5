package load

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scene is a run as it could have been: two rooms of three people, of whom two
// publish. The first room's node dies; in the second a stream falls silent and
// somebody is refused.
func scene() (l *Load, lives []life, end time.Time) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC)
	end = began.Add(12 * time.Second)
	o := defaults()
	o.URL, o.Rooms, o.Peers, o.Publishers, o.Duration, o.Seed = "http://127.0.0.1:7880/", 2, 3, 2, 10*time.Second, 42
	l = &Load{options: o, began: began, window: began.Add(2 * time.Second)}
	for index := range o.Peers {
		for room := range o.Rooms {
			p := &person{room: o.roomName(room), publishes: index < 2, firstNode: "sfu-1"}
			s := peer.Stats{
				Began: began, JoinedAt: began.Add(time.Duration(5+10*index+room) * time.Millisecond),
				FirstMedia: began.Add(time.Duration(30+10*index+room) * time.Millisecond), FoundThere: index,
				Joined: true, Node: "sfu-1", Epoch: 7, Connections: 1, Codes: map[wire.Code]int{},
				Streams: map[peer.StreamID]peer.Stream{}, Loss: peer.Loss{Expected: 10_000, Received: 9_999, Recovered: 2, Late: 1},
				Received: peer.Traffic{Packets: 1000, Bytes: 150_000}, SendLag: 3 * time.Millisecond,
			}
			if p.publishes {
				s.Sent = peer.Traffic{Packets: 600, Bytes: 100_000}
			}
			for other, name := range []wire.PeerID{"first", "second"} {
				if other == index {
					continue
				}
				for i, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera} {
					s.Streams[peer.StreamID{Peer: name, Source: source}] = peer.Stream{
						Packets: 500, Since: began, Last: end, LongestGap: time.Duration(20+80*i+index) * time.Millisecond, Connection: 1, Shown: true,
					}
				}
			}
			lives = append(lives, life{person: p, stats: s})
		}
	}
	inFirst, inSecond, refused := &lives[0], &lives[1], &lives[5]
	for _, one := range []*life{inFirst, &lives[2], &lives[4]} {
		one.stats.Restarts, one.stats.Node, one.stats.Connections = []wire.Placement{{Node: "sfu-2", Epoch: 8}}, "sfu-2", 2
		for id, stream := range one.stats.Streams {
			stream.Moves, stream.LongestGap, stream.Connection = []time.Duration{250 * time.Millisecond}, 250*time.Millisecond, 2
			one.stats.Streams[id] = stream
		}
	}
	camera := peer.StreamID{Peer: "second", Source: wire.SourceCamera}
	notBack := inFirst.stats.Streams[camera]
	notBack.Connection, notBack.Moves, notBack.LongestGap, notBack.Last = 1, nil, 100*time.Millisecond, end.Add(-9*time.Second)
	inFirst.stats.Streams[camera] = notBack
	silent := inSecond.stats.Streams[camera]
	silent.Packets, silent.Last = 0, time.Time{}
	inSecond.stats.Streams[camera] = silent
	code := wire.CodeRoomFull
	refused.gone, refused.stats = &code, peer.Stats{Began: began, Codes: map[wire.Code]int{code: 1, wire.CodeNotReady: 3}, SocketsLost: 3}
	return l, lives, end
}

func sceneReport() *Report {
	l, lives, end := scene()
	r := l.report(lives, totals{sent: peer.Traffic{Packets: 2400, Bytes: 400_000}, received: peer.Traffic{Packets: 5000, Bytes: 750_000}}, end, true)
	r.CPU = []ProcessCPU{{Process: "sfu-1", CPUSeconds: 1.25, Cores: 0.1}, {Process: "signaling-1", CPUSeconds: 0.5, Cores: 0.04}}
	r.Generator.ProcessCPU = ProcessCPU{Process: itself, CPUSeconds: 2.5, Cores: 0.21}
	return r
}

// TestTheReportKeepsItsForm: programs read the names, people the table.
func TestTheReportKeepsItsForm(t *testing.T) {
	r := sceneReport()
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"report.json": string(encoded) + "\n", "report.txt": table.String()} {
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs; if that is meant, run go test -update and raise ReportVersion for a name that went away:\n%s", name, got)
		}
	}
}

// TestNobodyReceivesMoreThanThereIs: seven speak in turn through six slots of sound.
func TestNobodyReceivesMoreThanThereIs(t *testing.T) {
	now := time.Now()
	o := Options{Rooms: 1, Peers: 8, Video: peer.VideoOff}
	l := &Load{options: o, began: now, window: now}
	var lives []life
	for range o.Peers {
		one := life{person: &person{room: "r", publishes: true}, stats: peer.Stats{Joined: true, Streams: map[peer.StreamID]peer.Stream{}}}
		for other := range o.Peers - 1 {
			one.stats.Streams[peer.StreamID{Peer: wire.PeerID(rune('a' + other)), Source: wire.SourceMicrophone}] = peer.Stream{Packets: 9, Last: now}
		}
		lives = append(lives, one)
	}
	r := l.report(lives, totals{}, now, false)
	var table strings.Builder
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	if want := "streams    48 of 48 received, 0 silent at the end; 56 different ones, as the speakers changed\n"; !strings.Contains(table.String(), want) {
		t.Errorf("want %q in %s", want, table.String())
	}
}
