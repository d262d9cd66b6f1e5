package sfu

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/pion/dtls/v3"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// A publisher sends 30 frames a second of six packets of 1,100 bytes: 1.6 Mbit/s.
const (
	fanOutFrames  = 30
	fanOutBurst   = 6
	fanOutPayload = 1100 - 12
	fanOutWarmUp  = 40 // frames: the estimates of the paths have begun
	fanOutTime    = 90 // frames that are measured
)

// fanOutCases are a frame's packets at once, or 1 ms apart; AES-128-GCM, or the older profile; with transport-wide feedback, or without.
// The plain ones are not of this node: see plainServer. The scraped ones have their metrics read ten times a second.
var fanOutCases = []struct {
	name  string
	apart time.Duration
	kind  clientKind
	serve func(*testing.B, dtls.SRTPProtectionProfile) server
}{
	{"burst", 0, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM, Feedback: true}, nodeServer},
	{"paced", time.Millisecond, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM, Feedback: true}, nodeServer},
	{"burst-scraped", 0, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM, Feedback: true}, scrapedServer},
	{"burst-nofeedback", 0, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM}, nodeServer},
	{"paced-nofeedback", time.Millisecond, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM}, nodeServer},
	{"burst-cm80", 0, clientKind{Profile: dtls.SRTP_AES128_CM_HMAC_SHA1_80, Feedback: true}, nodeServer},
	{"paced-cm80", time.Millisecond, clientKind{Profile: dtls.SRTP_AES128_CM_HMAC_SHA1_80, Feedback: true}, nodeServer},
	{"burst-plain", 0, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM, Feedback: true}, plainServer},
	{"paced-plain", time.Millisecond, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM, Feedback: true}, plainServer},
}

// server is what the clients are connected to.
type server struct {
	// join answers an offer. The channel is closed when the client is connected.
	join func(number int, kind clientKind, sdp string) (answer string, connected <-chan struct{})
	// calls is how often the kernel was given packets, nil where that is not counted.
	calls func() uint64
}

// nodeServer is a node of this project.
func nodeServer(b *testing.B, _ dtls.SRTPProtectionProfile) server {
	b.Helper()
	s := newStage(b, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	b.Cleanup(func() {
		if stats := s.node.socket.Stats(); stats.Errors > 0 {
			b.Error(stats)
		}
	})
	return s.server(b, s.looseConfig())
}

// scrapedServer is nodeServer with everything that Prometheus may ask for, asked for far more often than it does.
func scrapedServer(b *testing.B, _ dtls.SRTPProtectionProfile) server {
	b.Helper()
	s := newStage(b, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	scrape := scraper(s.node)
	ended := make(chan struct{})
	ctx := b.Context()
	go func() {
		defer close(ended)
		backoff.Every(ctx, 100*time.Millisecond, scrape)
	}()
	b.Cleanup(func() { <-ended })
	return s.server(b, s.looseConfig())
}

// scraper reads all metrics of a node, as Prometheus does.
func scraper(n *Node) func() {
	r := metrics.New("sfu", "sfu-1", panics.New(), slog.New(slog.DiscardHandler))
	NewMetrics(r)
	n.Measure(r)
	handler := r.Handler()
	return func() {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/metrics", nil))
	}
}

// BenchmarkScrape is what one scrape of a node with this many rooms costs.
func BenchmarkScrape(b *testing.B) {
	for _, rooms := range []int{1, 50} {
		b.Run(fmt.Sprintf("rooms=%d", rooms), func(b *testing.B) {
			s := newStage(b, "one")
			for i := range rooms {
				s.attach(fmt.Sprint("room-", i), "alice", 1)
			}
			scrape := scraper(s.node)
			b.ReportAllocs()
			for b.Loop() {
				scrape()
			}
		})
	}
}

// server has clients come into a room.
func (s *stage) server(b *testing.B, cfg connection.Config) server {
	b.Helper()
	return server{
		join: func(number int, kind clientKind, sdp string) (string, <-chan struct{}) {
			b.Helper()
			cfg.Peer, cfg.Key = forward.PeerID(fmt.Sprint(number)), fmt.Sprint(number)
			o, err := offer.Read(sdp, offerLimits(s.node.cfg.Limits))
			must(b, err)
			connected := make(chan struct{})
			cfg.Owner = looseOwner{connected: connected}
			cfg.Candidates, err = s.node.candidates()
			must(b, err)
			cfg.Compatible = kind.Profile != dtls.SRTP_AEAD_AES_128_GCM
			c, err := connection.Open(s.node.transport, o, cfg)
			must(b, err)
			b.Cleanup(c.Close)
			answer, err := c.Answer(&control.Offer{Id: "1"}, o)
			must(b, err)
			return answer, connected
		},
		calls: func() uint64 { return s.node.socket.Stats().Calls },
	}
}

// BenchmarkFanOut is what one publisher's packets cost the node for each subscriber they are sent to, over real sockets, and how long
// they take from the one to the other. The clients are in another process; CPU and memory are this one's. Run it with -cpu 1.
func BenchmarkFanOut(b *testing.B) {
	for _, subscribers := range []int{0, 20, 50, 100, 200} {
		for _, c := range fanOutCases {
			b.Run(fmt.Sprintf("%s/subscribers=%d", c.name, subscribers), func(b *testing.B) {
				publisher, subscriber := c.kind, c.kind
				publisher.Publish, subscriber.Video = true, 1
				kinds := []clientKind{publisher}
				for range subscribers {
					kinds = append(kinds, subscriber)
				}
				measure(b, c.serve(b, c.kind.Profile), kinds, 1, subscribers, c.apart)
			})
		}
	}
}

// BenchmarkMeeting is FanOut for ten people who all publish and see each other.
func BenchmarkMeeting(b *testing.B) {
	const people = 10
	for _, c := range fanOutCases {
		b.Run(c.name, func(b *testing.B) {
			kind := c.kind
			kind.Publish, kind.Video = true, people-1
			kinds := make([]clientKind, people)
			for i := range kinds {
				kinds[i] = kind
			}
			measure(b, c.serve(b, c.kind.Profile), kinds, people, people-1, c.apart)
		})
	}
}

// BenchmarkSubscriber is the memory of a silent subscriber with one m-line, and with the page's 6 slots of sound and 16 of pictures.
func BenchmarkSubscriber(b *testing.B) {
	const subscribers = 100
	for _, c := range []struct{ audio, video int }{{0, 1}, {6, 16}} {
		b.Run(fmt.Sprintf("slots=%d", c.audio+c.video), func(b *testing.B) {
			r := startReceiver(b)
			s := newStage(b, "one")
			s.attach("room", "alice", 1) // The node is running when somebody could attach.
			in := s.server(b, s.looseConfig())
			before, goroutines := freshRSS(b), runtime.NumGoroutine()
			for i := range subscribers {
				connectClient(b, in, r, i, clientKind{Profile: dtls.SRTP_AEAD_AES_128_GCM, Feedback: true, Audio: c.audio, Video: c.video})
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(freshRSS(b)-before)/subscribers/(1<<20), "MiB/subscriber")
			b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/subscribers, "goroutines/subscriber")
		})
	}
}

// freshRSS is rss after a collection.
func freshRSS(b *testing.B) int64 {
	b.Helper()
	runtime.GC() // What it puts aside (sync.Pool) goes with the next one.
	debug.FreeOSMemory()
	return rss(b)
}

// rss is the resident memory of this process in bytes.
func rss(b *testing.B) int64 {
	b.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	must(b, err)
	var size, resident int64
	_, err = fmt.Sscan(string(text), &size, &resident)
	must(b, err)
	return resident * int64(os.Getpagesize())
}

// connectClient brings a client to a server.
func connectClient(b *testing.B, to server, r *receiver, number int, kind clientKind) {
	b.Helper()
	var sdp string
	r.ask(b, request{Offer: &kind}, &sdp)
	answer, connected := to.join(number, kind, sdp)
	var done bool
	r.ask(b, request{Answer: answer}, &done)
	<-connected
}

// measure has the publishers among the clients send to so many slots each.
func measure(b *testing.B, on server, kinds []clientKind, publishers, slots int, apart time.Duration) {
	b.Helper()
	r := startReceiver(b)
	empty := freshRSS(b)
	for i, kind := range kinds {
		connectClient(b, on, r, i, kind)
	}
	calls := on.calls
	if calls == nil {
		calls = func() uint64 { return 0 }
	}
	send := func(frames int) int64 {
		var done bool
		r.ask(b, request{Send: &sending{Frames: frames, Apart: apart}}, &done)
		return int64(frames * fanOutBurst * publishers)
	}
	r.settled(b, send(fanOutWarmUp)*int64(slots))
	called := calls()
	cpu, begun, sent := cpuTime(b), time.Now(), int64(0)
	b.ResetTimer()
	for range b.N {
		sent += send(fanOutTime)
	}
	b.StopTimer()
	cpu = cpuTime(b) - cpu
	elapsed := time.Since(begun)
	called = calls() - called
	forwarded := sent * int64(slots)
	got := r.settled(b, forwarded)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(1000*cpu.Seconds()/elapsed.Seconds(), "millicores")
	if forwarded > 0 {
		b.ReportMetric(float64(cpu.Microseconds())/float64(forwarded), "cpu-us/packet")
		if on.calls != nil {
			b.ReportMetric(float64(called)/float64(forwarded), "calls/packet")
		}
		b.ReportMetric(100*float64(got.Packets)/float64(forwarded), "%received")
		b.ReportMetric(float64(got.P50.Microseconds())/1e3, "p50-ms")
		b.ReportMetric(float64(got.P99.Microseconds())/1e3, "p99-ms")
		b.ReportMetric(float64(rss(b)-empty)/float64(len(kinds))/(1<<20), "MiB/client")
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
