// Package webhook receives Holdfast's webhooks with LiveKit's library, from real processes that are killed. It is a module of its own, because that library
// brings many others.
package webhook

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	"github.com/livekit/protocol/webhook"
)

const (
	generous = 90 * time.Second
	key      = "app"
	people   = 3
	rooms    = 2
)

var secret = strings.Repeat("s", 32)

// receiver verifies every event with LiveKit's library. It keeps those that it accepted.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	down    bool
	refused int
	events  []*livekit.WebhookEvent
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		event, err := webhook.ReceiveWebhookEvent(request, auth.NewSimpleKeyProvider(key, secret))
		if err != nil || request.Header.Get("Content-Type") != webhook.ContentType {
			t.Errorf("LiveKit's library refuses an event: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.down {
			r.refused++
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		r.events = append(r.events, event)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) setDown(down bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = down
}

func (r *receiver) refusals() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// heard returns the events without those that came again, by their ids. A repetition must be equal.
func (r *receiver) heard(t *testing.T) (events []*livekit.WebhookEvent) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[string]*livekit.WebhookEvent{}
	for _, e := range r.events {
		before, again := known[e.GetId()]
		if again {
			if before.String() != e.String() {
				t.Errorf("one id, two events:\n%v\n%v", before, e)
			}
			continue
		}
		known[e.GetId()] = e
		events = append(events, e)
	}
	return events
}

func (r *receiver) count(t *testing.T, kind string) (n int) {
	t.Helper()
	for _, e := range r.heard(t) {
		if e.GetEvent() == kind {
			n++
		}
	}
	return n
}

func (r *receiver) waits(t *testing.T, kind string, want int) {
	t.Helper()
	until(t, fmt.Sprintf("%d of %s", want, kind), func() bool { return r.count(t, kind) >= want })
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(generous); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, generous)
		}
	}
}

// TestNothingIsLost kills the media node of the rooms and then the signaling node that sends, while the receiver is down.
func TestNothingIsLost(t *testing.T) {
	binary, r := build(t), newReceiver(t)
	store, gossip := address(t), address(t)
	env := []string{
		"HOLDFAST_CLUSTER_KEY=" + strings.Repeat("k", 32), "HOLDFAST_API_KEYS=" + key + ":" + secret, "HOLDFAST_STORE=redis://" + store,
		"HOLDFAST_WEBHOOK_URL=" + r.URL + "/hook", "HOLDFAST_JOIN=" + gossip,
	}
	start(t, binary, nil, "store", "--listen", store)
	pages := []string{address(t), address(t)}
	signaling := map[string]*exec.Cmd{}
	for i, page := range pages {
		args := []string{"signaling", "--name", fmt.Sprint("signaling-", i), "--listen", page, "--control-listen", "127.0.0.1:0", "--gossip-listen", "127.0.0.1:0"}
		if i == 0 {
			args = append(args[:len(args)-1], gossip, "--solo")
		}
		signaling[page] = start(t, binary, env, args...)
		ready(t, page)
	}
	media := map[string]*exec.Cmd{}
	node := func(name string) {
		media[name] = start(t, binary, env, "sfu", "--name", name, "--grace", "10s", "--control-listen", "127.0.0.1:0", "--media-listen", "127.0.0.1:0", "--gossip-listen", "127.0.0.1:0")
	}
	// All rooms live on the first media node, because it is the only one.
	node("sfu-0")
	start(t, binary, env, "load", "--url", "http://"+pages[1], "--rooms", strconv.Itoa(rooms), "--peers", strconv.Itoa(people), "--duration", "20s", "--video", "light")
	r.waits(t, webhook.EventParticipantJoined, rooms*people)
	r.waits(t, webhook.EventTrackPublished, rooms*people*2)
	node("sfu-1")
	until(t, "both media nodes are known", func() bool { return strings.Contains(nodes(t, pages[1]), "sfu-1") })

	r.setDown(true)
	kill(t, media["sfu-0"])
	until(t, "the receiver refuses", func() bool { return r.refusals() > 2 })
	// The first signaling node has the lease, because it was the first.
	kill(t, signaling[pages[0]])
	before := r.refusals()
	until(t, "the other signaling node sends", func() bool { return r.refusals() > before+1 })
	r.setDown(false)

	r.waits(t, "room_rehomed", rooms)
	r.waits(t, "node_down", 2)
	r.waits(t, webhook.EventRoomFinished, rooms)
	judge(t, r.heard(t))
}

// judge checks that each room's events are whole and in order.
func judge(t *testing.T, events []*livekit.WebhookEvent) {
	t.Helper()
	byRoom := map[string][]*livekit.WebhookEvent{}
	for _, e := range events {
		if name := e.GetRoom().GetName(); name != "" {
			byRoom[name] = append(byRoom[name], e)
		}
	}
	if len(byRoom) != rooms {
		t.Errorf("events of %d rooms: %v", len(byRoom), slices.Collect(maps.Keys(byRoom)))
	}
	for name, events := range byRoom {
		var words []string
		here, tracks, joined, moved := map[string]bool{}, map[string]bool{}, 0, 0
		for i, e := range events {
			who, track := e.GetParticipant().GetSid(), e.GetTrack().GetSid()
			words = append(words, e.GetEvent()+" "+who+" "+e.GetTrack().GetSource().String())
			fine := e.GetRoom().GetSid() == events[0].GetRoom().GetSid() && e.GetCreatedAt() >= events[max(i-1, 0)].GetCreatedAt()
			switch e.GetEvent() {
			case webhook.EventRoomStarted:
				fine = fine && i == 0
			case webhook.EventRoomFinished:
				fine = fine && i == len(events)-1 && len(here) == 0
			case webhook.EventParticipantJoined:
				fine = fine && !here[who] && i > 0
				here[who] = true
				joined++
			case webhook.EventParticipantLeft:
				fine = fine && here[who]
				delete(here, who)
			case webhook.EventTrackPublished:
				fine = fine && here[who] && !tracks[track]
				tracks[track] = true
			case webhook.EventTrackUnpublished:
				fine = fine && here[who] && tracks[track]
				delete(tracks, track)
			case "room_rehomed":
				// Nobody has left or come by it.
				fine = fine && len(here) == people && joined == people
				moved++
			}
			if !fine {
				t.Errorf("%s: event %d of %d is out of place: %v", name, i, len(events), e)
			}
		}
		if joined != people || len(here) > 0 || len(tracks) > 0 || moved != 1 {
			t.Errorf("%s: %d came, %d and %d tracks are left, %d moves:\n%s", name, joined, len(here), len(tracks), moved, strings.Join(words, "\n"))
		}
	}
}

func ready(t *testing.T, page string) {
	t.Helper()
	until(t, page+" answers", func() bool {
		conn, err := net.Dial("tcp", page)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// nodes returns what the signaling node says of the cluster.
func nodes(t *testing.T, page string) string {
	t.Helper()
	token, err := auth.NewAccessToken(key, secret).SetIdentity("operator").SetVideoGrant(&auth.VideoGrant{RoomList: true}).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+page+"/api/v1/nodes", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(answer.Body)
	return string(said)
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "webhook")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "holdfast")
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Dir = filepath.Join("..", "..")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	return binary, nil
})

func build(t *testing.T) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

func TestMain(m *testing.M) {
	code := m.Run()
	if binary, err := built(); err == nil {
		_ = os.RemoveAll(filepath.Dir(binary))
	}
	os.Exit(code)
}

func start(t *testing.T, binary string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%v:\n%s", args, said.String())
		}
	})
	return cmd
}

// address returns a free one, outside the range from which the kernel gives ports to sockets that ask for none in particular.
func address(t *testing.T) string {
	t.Helper()
	for range 200 {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(20_000+rand.IntN(12_000)))
		tcp, err := net.Listen("tcp", at)
		if err != nil {
			continue
		}
		udp, err := net.ListenPacket("udp", at)
		_ = tcp.Close()
		if err == nil {
			_ = udp.Close()
			return at
		}
	}
	t.Fatal("no port is free")
	return ""
}
