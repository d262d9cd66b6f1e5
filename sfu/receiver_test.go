package sfu

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"go.uber.org/goleak"
)

// receiverEnv makes the test binary a process full of clients, so that
// their CPU is not counted as the node's.
const receiverEnv = "HOLDFAST_BENCH_RECEIVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(receiverEnv); kind != "" {
		// This is the process that the benchmark starts for its clients.
		if err := runReceiver(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// request is what the benchmark asks of its clients: an offer of a new one, or that it takes the answer, or that the publishers
// send, or what all have received so far.
type request struct {
	Offer  *clientKind
	Answer string
	Send   *sending
}

// clientKind is how a client receives and sends.
type clientKind struct {
	Profile  dtls.SRTPProtectionProfile
	Feedback bool // on the transport, by which the node estimates its bandwidth
	Audio    int  // slots
	Video    int
	Publish  bool // a camera
}

// sending is what every publisher sends.
type sending struct {
	Frames int
	Apart  time.Duration // between the packets of a frame
}

// received is what all clients got since they were asked last.
type received struct {
	Packets  int64
	P50, P99 time.Duration // from a publisher to a subscriber
}

// clients are the connections of the process.
type clients struct {
	latest  *webrtc.PeerConnection
	cameras []*webrtc.TrackLocalStaticRTP
	sent    uint16 // packets of each
	delays  [4096]atomic.Int64
}

// delayStep is the resolution of the delays.
const delayStep = 50 * time.Microsecond

// runReceiver does what it is asked until the input ends.
func runReceiver(in io.Reader, out io.Writer) error {
	c := &clients{}
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var asked request
		if err := decoder.Decode(&asked); err != nil {
			return nil // the parent is done
		}
		var reply any = true
		var err error
		switch {
		case asked.Offer != nil:
			reply, err = c.open(*asked.Offer)
		case asked.Answer != "":
			err = c.latest.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: asked.Answer})
		case asked.Send != nil:
			c.send(*asked.Send)
		default:
			reply = c.received()
		}
		if err != nil {
			return err
		}
		if err := encoder.Encode(reply); err != nil {
			return err
		}
	}
}

func (c *clients) received() received {
	var counts [len(c.delays)]int64
	var r received
	for i := range c.delays {
		counts[i] = c.delays[i].Swap(0)
		r.Packets += counts[i]
	}
	below := int64(0)
	for i, n := range counts {
		below += n
		at := time.Duration(i) * delayStep
		if r.P50 == 0 && below*2 >= r.Packets {
			r.P50 = at
		}
		if r.P99 == 0 && below*100 >= r.Packets*99 {
			r.P99 = at
		}
	}
	return r
}

// keyframe is the beginning of a VP8 keyframe of 320 x 180. The time of sending follows.
const keyframe = "\x10\x10\x02\x00\x9d\x01\x2a\x40\x01\xb4\x00"

// send has all publishers send, one a little after the other.
func (c *clients) send(what sending) {
	var group sync.WaitGroup
	for i, camera := range c.cameras {
		group.Go(func() {
			<-time.After(time.Duration(i) * time.Second / fanOutFrames / time.Duration(len(c.cameras)))
			packet := &rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: c.sent}, Payload: []byte(keyframe + strings.Repeat("x", fanOutPayload-len(keyframe)))}
			ticker := time.NewTicker(time.Second / fanOutFrames)
			defer ticker.Stop()
			for range what.Frames {
				<-ticker.C
				packet.Timestamp += 90000 / fanOutFrames
				next := time.Now()
				for i := range fanOutBurst {
					packet.SequenceNumber++
					packet.Marker = i == fanOutBurst-1
					binary.BigEndian.PutUint64(packet.Payload[len(keyframe):], uint64(time.Now().UnixNano()))
					_ = camera.WriteRTP(packet) // What is lost is seen in what is received.
					if next = next.Add(what.Apart); what.Apart > 0 {
						<-time.After(time.Until(next)) // the rhythm of a pacer
					}
				}
			}
		})
	}
	group.Wait()
	c.sent += uint16(what.Frames * fanOutBurst)
}

// count notes what a slot shows.
func (c *clients) count(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
	buffer := make([]byte, 1500)
	for {
		n, _, err := track.Read(buffer)
		if err != nil {
			return
		}
		var header rtp.Header
		start, err := header.Unmarshal(buffer[:n])
		at := start + len(keyframe)
		if err != nil || n < at+8 {
			continue
		}
		delay := time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(buffer[at:]))))
		c.delays[min(max(int(delay/delayStep), 0), len(c.delays)-1)].Add(1)
	}
}

// open makes a connection and gives its offer.
func (c *clients) open(kind clientKind) (string, error) {
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetSRTPProtectionProfiles(kind.Profile)
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		return "", err
	}
	options := []func(*webrtc.API){webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings)}
	if !kind.Feedback {
		options = append(options, webrtc.WithInterceptorRegistry(nil))
	}
	pc, err := webrtc.NewAPI(options...).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return "", err
	}
	c.latest = pc
	pc.OnTrack(c.count)
	if kind.Publish {
		camera, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, "camera", "camera")
		if err != nil {
			return "", err
		}
		if _, err := pc.AddTransceiverFromTrack(camera, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}); err != nil {
			return "", err
		}
		c.cameras = append(c.cameras, camera)
	}
	for media, n := range map[webrtc.RTPCodecType]int{webrtc.RTPCodecTypeAudio: kind.Audio, webrtc.RTPCodecTypeVideo: kind.Video} {
		for range n {
			if _, err := pc.AddTransceiverFromKind(media, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
				return "", err
			}
		}
	}
	offer, err := pc.CreateOffer(nil)
	if err != nil {
		return "", err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(offer); err != nil {
		return "", err
	}
	<-gathered
	return pc.LocalDescription().SDP, nil
}

// receiver is the other process as the benchmark sees it.
type receiver struct {
	in  io.WriteCloser
	enc *json.Encoder
	dec *json.Decoder
	cmd *exec.Cmd
}

func startReceiver(tb testing.TB) *receiver {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), receiverEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(tb, err)
	out, err := cmd.StdoutPipe()
	must(tb, err)
	must(tb, cmd.Start())
	r := &receiver{in: in, enc: json.NewEncoder(in), dec: json.NewDecoder(out), cmd: cmd}
	tb.Cleanup(func() {
		must(tb, r.in.Close())
		must(tb, r.cmd.Wait())
	})
	return r
}

func (r *receiver) ask(tb testing.TB, asked request, reply any) {
	tb.Helper()
	must(tb, r.enc.Encode(asked))
	must(tb, r.dec.Decode(reply))
}

// settled gives what was received when the number of packets expected is there, or nothing more comes.
func (r *receiver) settled(tb testing.TB, expected int64) received {
	tb.Helper()
	const looks = 20 // without a change
	var all received
	for still := 0; still < looks && all.Packets < expected; still++ {
		var more received
		r.ask(tb, request{}, &more)
		if more.Packets > 0 {
			still = 0
			if all.Packets < more.Packets {
				all.P50, all.P99 = more.P50, more.P99
			}
			all.Packets += more.Packets
		}
		<-time.After(20 * time.Millisecond)
	}
	return all
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
