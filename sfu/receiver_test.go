package sfu

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/webrtc/v4"
	"go.uber.org/goleak"
)

// receiverEnv makes the test binary a process full of subscribers, so that
// their CPU is not counted as the node's.
const receiverEnv = "HOLDFAST_BENCH_RECEIVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(receiverEnv); kind != "" {
		// This is the process that the benchmark starts for its subscribers.
		if err := runReceiver(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// request is what the benchmark asks of its subscribers: an offer of a new one, or that it takes the answer, or how many packets
// all have received so far.
type request struct {
	Offer  *subscriberKind
	Answer string
}

// subscriberKind is how a subscriber receives.
type subscriberKind struct {
	Profile  dtls.SRTPProtectionProfile
	Feedback bool // on the transport, by which the node estimates its bandwidth
	Audio    int  // slots
	Video    int
}

// runReceiver does what it is asked until the input ends.
func runReceiver(in io.Reader, out io.Writer) error {
	var received atomic.Int64
	var pc *webrtc.PeerConnection
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var asked request
		if err := decoder.Decode(&asked); err != nil {
			return nil // the parent is done
		}
		var reply any = received.Load()
		var err error
		switch {
		case asked.Offer != nil:
			pc, reply, err = newSubscriber(*asked.Offer, &received)
		case asked.Answer != "":
			err = pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: asked.Answer})
		}
		if err != nil {
			return err
		}
		if err := encoder.Encode(reply); err != nil {
			return err
		}
	}
}

// newSubscriber makes a connection with slots and gives its offer.
func newSubscriber(kind subscriberKind, received *atomic.Int64) (*webrtc.PeerConnection, string, error) {
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetSRTPProtectionProfiles(kind.Profile)
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		return nil, "", err
	}
	options := []func(*webrtc.API){webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings)}
	if !kind.Feedback {
		options = append(options, webrtc.WithInterceptorRegistry(nil))
	}
	pc, err := webrtc.NewAPI(options...).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, "", err
	}
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		buffer := make([]byte, 1500)
		for {
			if _, _, err := track.Read(buffer); err != nil {
				return
			}
			received.Add(1)
		}
	})
	for media, n := range map[webrtc.RTPCodecType]int{webrtc.RTPCodecTypeAudio: kind.Audio, webrtc.RTPCodecTypeVideo: kind.Video} {
		for range n {
			if _, err := pc.AddTransceiverFromKind(media, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
				return nil, "", err
			}
		}
	}
	offer, err := pc.CreateOffer(nil)
	if err != nil {
		return nil, "", err
	}
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(offer); err != nil {
		return nil, "", err
	}
	<-gathered
	return pc, pc.LocalDescription().SDP, nil
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

// settled counts when the number of packets expected is there, or nothing more comes.
func (r *receiver) settled(tb testing.TB, expected int64) int64 {
	tb.Helper()
	const looks = 40 // without a change
	last := int64(-1)
	for still := 0; still < looks; still++ {
		var n int64
		r.ask(tb, request{}, &n)
		if n >= expected {
			return n
		}
		if n != last {
			still = 0
		}
		last = n
		<-time.After(50 * time.Millisecond)
	}
	return last
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
