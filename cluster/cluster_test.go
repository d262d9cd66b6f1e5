package cluster

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(childJoin) != "" {
		runChild()
		return
	}
	// Shutting memberlist down does not wait for a probe that is under way; the probe ends by its own deadline.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/hashicorp/memberlist.(*Memberlist).probeNode"))
}

// process is one Cluster that runs in a test.
type process struct {
	*Cluster
	t     *testing.T
	stop  context.CancelFunc
	ended chan error
	mu    sync.Mutex // guards told
	told  []Event
}

// testLog shows the logs of a test only when it fails or with -v.
func testLog(t *testing.T, node ring.NodeID) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})).With("at", node)
}

func start(t *testing.T, config Config) *process {
	t.Helper()
	return startLogging(t, config, testLog(t, config.Node.ID))
}

func startLogging(t *testing.T, config Config, log *slog.Logger) *process {
	t.Helper()
	c, err := New(config, log)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, c)
}

func run(t *testing.T, c *Cluster) *process {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &process{Cluster: c, t: t, stop: stop, ended: make(chan error, 1)}
	events, cancel := c.Subscribe()
	var reader sync.WaitGroup
	reader.Go(func() {
		for e := range events {
			p.mu.Lock()
			p.told = append(p.told, e)
			p.mu.Unlock()
		}
	})
	go func() { p.ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-c.done
		reader.Wait()
		cancel()
	})
	select {
	case <-c.Running():
	case err := <-p.ended:
		t.Fatalf("%s: Run = %v", c.config.Node.ID, err)
	}
	return p
}

// leave ends the process as a signal does.
func (p *process) leave() {
	p.t.Helper()
	p.stop()
	if err := <-p.ended; err != nil {
		p.t.Fatalf("%s: Run = %v", p.config.Node.ID, err)
	}
}

// kill ends it without a word, sockets closed, as SIGKILL does.
func (p *process) kill() {
	p.t.Helper()
	close(p.crash)
	if err := <-p.ended; err != nil {
		p.t.Fatalf("%s: Run = %v", p.config.Node.ID, err)
	}
}

// events returns what was heard of a node, as "kind (why)".
func (p *process) events(id ring.NodeID) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, e := range p.told {
		if e.Node.ID == id {
			out = append(out, fmt.Sprintf("%s (%s)", e.Kind, e.Why))
		}
	}
	return out
}

// await waits until the view is as wanted.
func (p *process) await(what string, ok func(*View) bool) {
	p.t.Helper()
	testkit.Eventually(p.t, fmt.Sprintf("%s sees %s", p.config.Node.ID, what), func() bool { return ok(p.View()) })
}

// network is a test's cluster: its key and its first member.
type network struct {
	t    *testing.T
	key  []byte
	seed string
	boot int
}

func newNetwork(t *testing.T) *network {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key)
	return &network{t: t, key: key}
}

// config gives a node of the next boot; ids beginning with "signaling" are signaling nodes.
func (n *network) config(id string) Config {
	n.boot++
	node := sfuNode(id, n.boot)
	if strings.HasPrefix(id, "signaling") {
		node = Node{ID: node.ID, Boot: node.Boot, Role: RoleSignaling, HTTP: "127.0.0.1:80"}
	}
	c := Config{Node: node, Bind: "127.0.0.1:0", Keys: [][]byte{n.key}, Solo: n.seed == ""}
	if n.seed != "" {
		c.Join = []string{n.seed}
	}
	return c
}

func (n *network) start(id string) *process {
	n.t.Helper()
	p := start(n.t, n.config(id))
	if n.seed == "" {
		n.seed = p.LocalAddr()
	}
	return p
}

// together waits until everybody sees everybody, and settled.
func (n *network) together(all ...*process) {
	n.t.Helper()
	for _, p := range all {
		p.await("everybody", func(v *View) bool {
			for _, other := range all {
				if cmp.Or(v.Nodes[other.config.Node.ID], v.Signaling[other.config.Node.ID]).Boot != other.config.Node.Boot {
					return false
				}
			}
			return v.Settled
		})
	}
}

func TestMembersMeetAndShareLoads(t *testing.T) {
	n := newNetwork(t)
	signaling := n.start("signaling-1")
	if !signaling.View().Settled {
		signaling.await("itself, settled", func(v *View) bool { return v.Settled })
	}
	a, b := n.start("sfu-1"), n.start("sfu-2")
	n.together(signaling, a, b)
	for _, p := range []*process{signaling, a, b} {
		if got := p.View().Ring.Nodes(); !slices.Equal(got, []ring.NodeID{"sfu-1", "sfu-2"}) {
			t.Fatalf("%s has a ring of %q", p.config.Node.ID, got)
		}
	}
	if got := signaling.View().Nodes["sfu-1"]; got != a.config.Node {
		t.Fatalf("signaling node sees %+v, want %+v", got, a.config.Node)
	}

	load := Load{Seq: 1, EgressBitsPerSecond: 5e6, CeilingBitsPerSecond: 1e9, Rooms: 3, Peers: 9}
	a.SetLoad(load)
	a.SetLoad(Load{Seq: 1, Rooms: 99}) // Not newer: ignored.
	for _, p := range []*process{signaling, a, b} {
		p.await("the load of sfu-1", func(v *View) bool { return v.Nodes["sfu-1"].Load == load })
	}
	late := n.start("signaling-2") // Learns the load from the state exchange.
	late.await("the load of sfu-1", func(v *View) bool { return v.Nodes["sfu-1"].Load == load })

	a.SetDraining(true, false)
	for _, p := range []*process{signaling, a, b, late} {
		p.await("sfu-1 draining", func(v *View) bool {
			return v.Nodes["sfu-1"].Draining && slices.Equal(v.Ring.Nodes(), []ring.NodeID{"sfu-2"})
		})
	}
	if got := signaling.View().Nodes["sfu-1"].Load; got != load {
		t.Fatalf("load after an update is %+v", got)
	}
	if got := signaling.events("signaling-1"); len(got) != 0 {
		t.Fatalf("events about oneself: %q", got)
	}
}

// TestLoadReachesManyMembers needs the members to pass reports on: the sender itself sends
// each only to a few. A state exchange would spread it, too, but those are 10 s apart.
func TestLoadReachesManyMembers(t *testing.T) {
	n := newNetwork(t)
	var all []*process
	for i := range 12 {
		all = append(all, n.start(fmt.Sprintf("sfu-%d", i+1)))
	}
	n.together(all...)
	var took []time.Duration
	for seq := range uint64(5) {
		began := time.Now()
		all[3].SetLoad(Load{Seq: seq + 1})
		for _, p := range all {
			p.await("the load", func(v *View) bool { return v.Nodes["sfu-4"].Load.Seq == seq+1 })
		}
		took = append(took, time.Since(began))
	}
	// Gossip passes a report on by chance, so one in many misses somebody, who then has it from the
	// next report, a second later in life, or here from an exchange of everything. Most must not wait for that.
	slices.Sort(took)
	if median := took[len(took)/2]; median > pushPullInterval/5 {
		t.Errorf("reports took %v to reach 12 members", took)
	} else {
		t.Logf("reports reached 12 members in %v", took)
	}
}

func TestLeaveAndDeathAreToldApart(t *testing.T) {
	n := newNetwork(t)
	signaling, leaver, victim, other := n.start("signaling-1"), n.start("sfu-1"), n.start("sfu-2"), n.start("sfu-3")
	n.together(signaling, leaver, victim, other)

	leaver.leave()
	for _, p := range []*process{signaling, victim, other} {
		p.await("sfu-1 left", func(v *View) bool { return v.Gone[leaver.config.Node.Boot] != "" })
	}
	killed := time.Now()
	victim.kill()
	for _, p := range []*process{signaling, other} {
		p.await("sfu-2 dead", func(v *View) bool { return v.Gone[victim.config.Node.Boot] == DepartureDead })
		t.Logf("%s: kill believed after %v", p.config.Node.ID, time.Since(killed).Round(time.Millisecond))
		if v := p.View(); v.Gone[leaver.config.Node.Boot] != DepartureLeft || len(v.Ring.Nodes()) != 1 {
			t.Errorf("%s: gone %v, ring of %q", p.config.Node.ID, v.Gone, v.Ring.Nodes())
		}
		testkit.Eventually(t, "both events", func() bool { return len(p.events("sfu-1")) == 2 && len(p.events("sfu-2")) == 2 })
		if got := p.events("sfu-1"); !slices.Equal(got, []string{"joined (gossip)", "left (leave message)"}) {
			t.Errorf("%s heard of sfu-1: %q", p.config.Node.ID, got)
		}
		if got := p.events("sfu-2"); !slices.Equal(got, []string{"joined (gossip)", "dead (gossip)"}) {
			t.Errorf("%s heard of sfu-2: %q", p.config.Node.ID, got)
		}
	}
}

func TestQuickRestartIsADeath(t *testing.T) {
	n := newNetwork(t)
	signaling, first := n.start("signaling-1"), n.start("sfu-1")
	n.together(signaling, first)
	first.SetLoad(Load{Seq: 7})
	signaling.await("a load", func(v *View) bool { return v.Nodes["sfu-1"].Load.Seq == 7 })
	first.kill()
	config := n.config("sfu-1")
	config.Bind = first.LocalAddr() // The same port, as a supervisor restarts it.
	second := start(t, config)
	n.together(signaling, second)
	if v := signaling.View(); v.Gone[first.config.Node.Boot] != DepartureDead || v.Nodes["sfu-1"].Load.Seq != 0 {
		t.Fatalf("after the restart: gone %v, load %+v", v.Gone, v.Nodes["sfu-1"].Load)
	}
	testkit.Eventually(t, "the restart", func() bool { return len(signaling.events("sfu-1")) >= 3 })
	// Wait until memberlist has noticed, too: another member's death comes after it.
	other := n.start("sfu-2")
	n.together(signaling, second, other)
	other.kill()
	signaling.await("sfu-2 dead", func(v *View) bool { return v.Gone[other.config.Node.Boot] != "" })
	if got, want := signaling.events("sfu-1"), []string{"joined (gossip)", "dead (newer boot)", "joined (gossip)"}; !slices.Equal(got, want) {
		t.Fatalf("signaling node heard %q, want %q", got, want)
	}
}

func TestProofComesFirstAndGossipIsNoSecondEvent(t *testing.T) {
	n := newNetwork(t)
	signaling, victim, other := n.start("signaling-1"), n.start("sfu-1"), n.start("sfu-2")
	n.together(signaling, victim, other)
	victim.kill()
	signaling.ReportDead("sfu-1", victim.config.Node.Boot, "proof")
	v := signaling.View() // At once, without waiting.
	if v.Gone[victim.config.Node.Boot] != DepartureDead || v.Ring.Len() != 1 {
		t.Fatalf("after the proof: gone %v, ring of %q", v.Gone, v.Ring.Nodes())
	}
	signaling.ReportDead("sfu-1", victim.config.Node.Boot, "proof")
	signaling.ReportDead("signaling-1", signaling.config.Node.Boot, "proof") // Ourselves: ignored.
	other.await("sfu-1 dead by gossip", func(v *View) bool { return v.Gone[victim.config.Node.Boot] != "" })
	// sfu-2's own death is later than gossip's word about sfu-1.
	other.kill()
	signaling.await("sfu-2 dead", func(v *View) bool { return v.Gone[other.config.Node.Boot] != "" })
	if got, want := signaling.events("sfu-1"), []string{"joined (gossip)", "dead (proof)"}; !slices.Equal(got, want) {
		t.Fatalf("signaling node heard %q, want %q", got, want)
	}
}

// TestSeedsThatComeLater starts a member whose seed is not up: it is not settled, keeps
// trying, and settles when the seed appears.
func TestSeedsThatComeLater(t *testing.T) {
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	seed := reserved.Addr().String()
	n := newNetwork(t)
	first := n.config("sfu-1")
	first.Solo, first.Join = false, []string{seed}
	reserved.Close()
	early := start(t, first)
	if v := early.View(); v.Settled || v.Ring.Len() != 1 {
		t.Fatalf("without having heard from anybody: settled %v, ring of %d", v.Settled, v.Ring.Len())
	}
	second := n.config("sfu-2")
	second.Bind, second.Solo, second.Join = seed, false, []string{seed} // Its own address is no partner.
	late := start(t, second)
	n.together(early, late)

	// Who has met another member once has seen the cluster, also when its only peer dies: a media node's readiness rests on that.
	late.kill()
	early.await("the only peer is dead", func(v *View) bool { return v.Gone[late.config.Node.Boot] == DepartureDead })
	if !early.View().Settled {
		t.Error("the death of the only peer unsettled the view")
	}
}

// TestGarbageOnTheGossipPort sends what is no gossip of this cluster, unencrypted and
// under another key, and sees nothing happen.
func TestGarbageOnTheGossipPort(t *testing.T) {
	n := newNetwork(t)
	signaling, a := n.start("signaling-1"), n.start("sfu-1")
	n.together(signaling, a)
	for _, address := range []string{signaling.LocalAddr(), a.LocalAddr()} {
		for _, garbage := range [][]byte{{}, {0}, bytes.Repeat([]byte{1}, 1400), message{kind: kindLeave, from: a.config.Node}.encode(), []byte("GET / HTTP/1.1\r\n\r\n")} {
			for _, network := range []string{"udp", "tcp"} {
				conn, err := net.Dial(network, address)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = conn.Write(garbage)
				_, _ = conn.Write(append([]byte{8}, garbage...)) // 8: memberlist's type of a user message.
				conn.Close()
			}
		}
	}
	crowd(t, signaling.LocalAddr())
	stranger := newNetwork(t)
	stranger.seed, stranger.boot = signaling.LocalAddr(), 100
	intruder := stranger.start("sfu-6")
	// A real change passes, after the garbage, through the same sockets.
	a.SetLoad(Load{Seq: 1})
	signaling.await("the load", func(v *View) bool { return v.Nodes["sfu-1"].Load.Seq == 1 })
	if v := signaling.View(); len(v.Nodes)+len(v.Signaling) != 2 || len(v.Gone) != 0 {
		t.Fatalf("garbage changed the view: %+v", v)
	}
	if v := intruder.View(); v.Settled || len(v.Nodes) != 1 {
		t.Fatalf("another key got in: %+v", v)
	}
}

// crowd sends a state that is too long, and opens more streams that say nothing than may
// wait: each ends as soon as it can.
func crowd(t *testing.T, address string) {
	t.Helper()
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	long := dial()
	_, err := long.Write([]byte{10, 0x01, 0x30, 0, 0}) // 10: memberlist's type of an encrypted message, here of 19 MB.
	for sent := 0; err == nil; sent += 64 << 10 {
		if sent > 16<<20 {
			t.Fatal("16 MB of an exchange that nobody proved were read")
		}
		_, err = long.Write(make([]byte, 64<<10))
	}
	first := dial()
	for range streamsPerAddress {
		dial()
	}
	began := time.Now()
	if _, err := first.Read(make([]byte, 1)); err == nil || time.Since(began) > streamTimeout {
		t.Errorf("the stream that waited longest ended with %v after %v", err, time.Since(began))
	}
}

func TestRunEnds(t *testing.T) {
	n := newNetwork(t)
	p := n.start("sfu-1")
	if err := p.Run(context.Background()); !errors.Is(err, errAlreadyRun) {
		t.Fatalf("second Run = %v", err)
	}
	taken, err := New(Config{Node: sfuNode("sfu-2", 9), Bind: p.LocalAddr(), Keys: [][]byte{n.key}, Solo: true}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := taken.Run(context.Background()); err == nil {
		t.Fatal("Run on a taken port did not fail")
	}
	p.leave()
	// All of it answers after the end.
	p.SetLoad(Load{Seq: 1})
	p.SetDraining(true, true)
	p.ReportDead("sfu-9", pin.BootID("9"), "proof")
	if p.View() == nil {
		t.Fatal("no view after the end")
	}
	events, cancel := p.Subscribe()
	defer cancel()
	if _, open := <-events; open {
		t.Fatal("an event after the end")
	}
}
