package forward

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"
)

// receiverEnv makes the test binary a process full of subscribers, so that
// their CPU is not counted as ours.
const receiverEnv = "HOLDFAST_BENCH_RECEIVER"

// runReceiver answers each offer that comes in with a new connection, and a
// null with the number of packets received so far, until the input ends.
func runReceiver(in io.Reader, out io.Writer) error {
	var settings webrtc.SettingEngine
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	api, err := benchAPI(settings, true)
	if err != nil {
		return err
	}
	var received atomic.Int64
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var offer *webrtc.SessionDescription
		if err := decoder.Decode(&offer); err != nil {
			return nil // the parent is done
		}
		if offer == nil {
			if err := encoder.Encode(received.Load()); err != nil {
				return err
			}
			continue
		}
		pc, err := api.NewPeerConnection(webrtc.Configuration{})
		if err != nil {
			return err
		}
		pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
			buffer := make([]byte, packetCapacity)
			for {
				if _, _, err := track.Read(buffer); err != nil {
					return
				}
				received.Add(1)
			}
		})
		if err := pc.SetRemoteDescription(*offer); err != nil {
			return err
		}
		answer, err := pc.CreateAnswer(nil)
		if err != nil {
			return err
		}
		gathered := webrtc.GatheringCompletePromise(pc)
		if err := pc.SetLocalDescription(answer); err != nil {
			return err
		}
		<-gathered
		if err := encoder.Encode(pc.LocalDescription()); err != nil {
			return err
		}
	}
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
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), receiverEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(tb, err)
	out, err := cmd.StdoutPipe()
	must(tb, err)
	must(tb, cmd.Start())
	return &receiver{in: in, enc: json.NewEncoder(in), dec: json.NewDecoder(out), cmd: cmd}
}

// connect joins one sending connection to the other process.
func (r *receiver) connect(tb testing.TB, pc *webrtc.PeerConnection) {
	tb.Helper()
	offer, err := pc.CreateOffer(nil)
	must(tb, err)
	connected := make(chan struct{})
	pc.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		if s == webrtc.PeerConnectionStateConnected {
			close(connected)
		}
	})
	gathered := webrtc.GatheringCompletePromise(pc)
	must(tb, pc.SetLocalDescription(offer))
	<-gathered
	must(tb, r.enc.Encode(pc.LocalDescription()))
	var answer webrtc.SessionDescription
	must(tb, r.dec.Decode(&answer))
	must(tb, pc.SetRemoteDescription(answer))
	<-connected
}

// count is the number of packets that all subscribers have received.
func (r *receiver) count(tb testing.TB) int64 {
	tb.Helper()
	must(tb, r.enc.Encode(nil))
	var n int64
	must(tb, r.dec.Decode(&n))
	return n
}

// settled counts when the number expected is there, or nothing more comes.
func (r *receiver) settled(tb testing.TB, expected int64) int64 {
	tb.Helper()
	const patience = 40 // looks without a change
	last := int64(-1)
	for still := 0; still < patience; still++ {
		n := r.count(tb)
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

func (r *receiver) stop(tb testing.TB) {
	tb.Helper()
	must(tb, r.in.Close())
	must(tb, r.cmd.Wait())
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// benchAPI makes connections with Pion's default codecs, with or without its
// default interceptors.
func benchAPI(settings webrtc.SettingEngine, interceptors bool) (*webrtc.API, error) {
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		return nil, fmt.Errorf("register codecs: %w", err)
	}
	if interceptors {
		return webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings)), nil
	}
	return webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings),
		webrtc.WithInterceptorRegistry(nil)), nil
}
