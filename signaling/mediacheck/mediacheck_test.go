package mediacheck

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// views is gossip that the test writes.
type views struct{ now atomic.Pointer[cluster.View] }

func (v *views) View() *cluster.View { return v.now.Load() }

type owner struct{}

func (owner) Opening(context.Context, ring.RoomID) (pin.Pin, error) { return pin.Pin{}, nil }
func (owner) Confirm(context.Context, ring.RoomID, pin.Pin) error   { return nil }
func (owner) StoreSteadyFor() time.Duration                         { return time.Hour }

// pair is a media node and what tries it, each with its log.
type pair struct {
	checker      *Checker
	boot         pin.BootID
	port         string
	here, there  testkit.Log
	mediaAddress netip.AddrPort
}

func newPair(t *testing.T, advertised ...string) *pair {
	t.Helper()
	key, err := control.ParseClusterKey("0123456789abcdef0123456789abcdef-test")
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{boot: pin.NewBootID(time.Now())}
	cfg := sfu.DefaultConfig()
	cfg.Node, cfg.Boot, cfg.Loopback, cfg.AdvertiseIPs = "sfu-1", p.boot, true, advertised
	node, err := sfu.New(cfg, owner{}, slog.New(slog.NewTextHandler(&p.there, nil)))
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.mediaAddress = netip.MustParseAddrPort(node.MediaAddress().String())
	_, p.port, _ = net.SplitHostPort(node.MediaAddress().String())
	pool, gossip, quiet := control.NewPool(key, control.DefaultConfig()), &views{}, slog.New(slog.DiscardHandler)
	gossip.now.Store(&cluster.View{Settled: true, Nodes: map[ring.NodeID]cluster.Node{
		"sfu-1": {ID: "sfu-1", Boot: p.boot, Role: cluster.RoleSFU, Control: lis.Addr().String()},
	}})
	p.checker = New("signaling-1", pool, gossip, panics.New(), slog.New(slog.NewTextHandler(&p.here, &slog.HandlerOptions{Level: slog.LevelDebug})))
	server := control.NewServer(key, panics.New(), quiet)
	ctx, cancel := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	runs.Go(func() { _ = node.Run(ctx) })
	runs.Go(func() { _ = server.Serve(ctx, lis, node.Register) })
	runs.Go(func() { _ = p.checker.Run(ctx) })
	t.Cleanup(func() { cancel(); runs.Wait(); pool.Close() })
	return p
}

// TestWhatDoesNotAnswerIsTold on both sides, and what answers is not.
func TestWhatDoesNotAnswerIsTold(t *testing.T) {
	t.Parallel()
	p := newPair(t, "127.0.0.1", "127.0.0.9")
	p.here.Wait(t, "do not answer here")
	p.there.Wait(t, "does not answer a signaling node")
	want := "silent=127.0.0.9:" + p.port
	for side, said := range map[string]string{"here": p.here.String(), "there": p.there.String()} {
		if !strings.Contains(said, want+"\n") {
			t.Errorf("%s the log has not %q: %s", side, want, said)
		}
	}
	told, silent := p.checker.Told(p.boot)
	if !slices.Equal(told, []string{"127.0.0.1:" + p.port, "127.0.0.9:" + p.port}) || !slices.Equal(silent, []string{"127.0.0.9:" + p.port}) {
		t.Errorf("told %v, silent %v", told, silent)
	}
}

func TestWhatAnswersIsSaidOnce(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.there.Wait(t, "told answer a signaling node")
	testkit.Eventually(t, "what the node tells clients", func() bool {
		told, silent := p.checker.Told(p.boot)
		return slices.Equal(told, []string{p.mediaAddress.String()}) && silent == nil
	})
	if said := p.here.String(); strings.Contains(said, "WARN") || strings.Contains(p.there.String(), "WARN") {
		t.Errorf("a warning: %s", said)
	}
}

// TestOnlyWhoKnowsThePasswordAnswers and nothing else of the media socket does: a stranger learns nothing from it.
func TestOnlyWhoKnowsThePasswordAnswers(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.there.Wait(t, "told answer a signaling node")
	reply, err := func() (*control.ReachReply, error) {
		client, err := p.checker.pool.Client(p.checker.views.View().Nodes["sfu-1"].Control)
		if err != nil {
			return nil, err
		}
		return client.Reach(t.Context(), &control.ReachRequest{Signaling: "signaling-2"})
	}()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		ufrag, password string
		want            answer
	}{
		{reply.GetUfrag(), reply.GetPassword(), answered},
		{reply.GetUfrag(), "wrong", silent},
		{"wrong", reply.GetPassword(), silent},
	} {
		if got := check(t.Context(), p.mediaAddress, row.ufrag, row.password); got != row.want {
			t.Errorf("user %s: %v, want %v", row.ufrag, got, row.want)
		}
	}
}

// FuzzAnswers: what comes from the network is never taken for an answer without the password.
func FuzzAnswers(f *testing.F) {
	var id [stun.TransactionIDSize]byte
	good, err := stun.Build(stun.NewTransactionIDSetter(id), stun.BindingSuccess, stun.NewShortTermIntegrity("other"), stun.Fingerprint)
	if err != nil {
		f.Fatal(err)
	}
	if !answers(good.Raw, id, "other") {
		f.Fatal("a good answer is refused")
	}
	f.Add(good.Raw)
	f.Add([]byte{1, 1, 0, 0})
	f.Fuzz(func(t *testing.T, packet []byte) {
		if answers(packet, id, "password") {
			t.Errorf("taken for an answer: %x", packet)
		}
	})
}
