package devcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/pin"
)

// For a cold, busy machine; gossip settles within seconds.
const readyLimit = 60 * time.Second

func (s *Supervisor) bringUp(ctx context.Context) error {
	began := time.Now()
	if err := s.listenable(); err != nil {
		return err
	}
	if s.options.Redis == "" {
		if err := s.startNew(ctx, "store", RoleStore); err != nil {
			return err
		}
	}
	for i := 1; i <= s.options.Sentinels; i++ {
		if err := s.startNew(ctx, fmt.Sprintf("sentinel-%d", i), RoleSentinel); err != nil {
			return err
		}
	}
	// The others join this one.
	if err := s.startNew(ctx, "sfu-1", RoleSFU); err != nil {
		return err
	}
	rest, restCtx := errgroup.WithContext(ctx)
	for i := 2; i <= s.options.SFU; i++ {
		rest.Go(func() error { return s.startNew(restCtx, fmt.Sprintf("sfu-%d", i), RoleSFU) })
	}
	for i := 1; i <= s.options.Signaling; i++ {
		rest.Go(func() error { return s.startNew(restCtx, fmt.Sprintf("signaling-%d", i), RoleSignaling) })
	}
	if err := rest.Wait(); err != nil {
		return err
	}
	if err := s.startFront(ctx); err != nil {
		return err
	}
	if err := s.waitReady(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.ready = true
	page := s.page
	s.mu.Unlock()
	s.banner(time.Since(began))
	return s.onReady(strings.TrimSuffix(strings.TrimPrefix(page, "http://"), "/"))
}

func (s *Supervisor) startFront(ctx context.Context) error {
	s.mu.Lock()
	switch {
	case s.options.Listen != "":
	case listens(DefaultListen) == nil:
		s.options.Listen = DefaultListen
	default:
		s.options.Listen = "127.0.0.1:0"
	}
	s.mu.Unlock()
	if err := s.startNew(ctx, "front", RoleFront); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	front, err := s.find("front")
	if err != nil {
		return err
	}
	s.page = "http://" + front.seen[child.AddressHTTP] + "/"
	return nil
}

// listenable finds a bad --listen early.
func (s *Supervisor) listenable() error {
	if s.options.Listen == "" || s.options.host("front").Space != "" {
		return nil
	}
	if err := listens(s.options.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	return nil
}

func (s *Supervisor) startNew(ctx context.Context, name string, role Role) error {
	if _, err := s.add(role, func(int) string { return name }); err != nil {
		return err
	}
	_, err := s.start(ctx, name, s.options.NodeEnv[name])
	return err
}

// startTries bounds how often a node is started whose ports others took between our look and its start.
const startTries = 5

func (s *Supervisor) start(ctx context.Context, name string, env []string) (Node, error) {
	m, err := s.reserve(name)
	if err != nil {
		return Node{}, err
	}
	defer s.watchers.Done() // added by reserve: the end waits for this start
	for try := 1; ; try++ {
		a := s.attempt(m, env)
		p, err := launch(ctx, s.spawner, a.command, reportLimit)
		if errors.Is(err, errEndedEarly) && try < startTries && a.taken() {
			continue
		}
		return s.started(m, a, p, err)
	}
}

// attempt is one start of a node. The supervisor's mutex guards it.
type attempt struct {
	command

	free  func(address string) error
	given []string          // host:port
	moved map[string]string // the addresses of a later report
}

// taken reports whether another process has a port of the node, which has ended.
func (a *attempt) taken() bool {
	return slices.ContainsFunc(a.given, func(address string) bool { return a.free(address) != nil })
}

func (s *Supervisor) started(m *member, a *attempt, p *process, err error) (Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.pending = false
	if p != nil {
		m.run = p
		m.starts++
	}
	if err != nil {
		return m.node(), fmt.Errorf("start %s: %w\n%s", m.name, err, lastLines(m.log.text(), 5))
	}
	if m.seen = p.report.Addresses; a.moved != nil {
		m.seen = a.moved
	}
	s.watchers.Go(func() { s.watch(m, p) })
	if s.ending {
		go p.end(endLimit)
		return m.node(), ErrEnding
	}
	return m.node(), nil
}

func (s *Supervisor) reserve(name string) (*member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, err := s.find(name)
	switch {
	case err != nil:
		return nil, err
	case s.ending:
		return nil, ErrEnding
	case m.pending || (m.run != nil && m.run.alive()):
		return nil, &refusal{ErrConflict, name + " is running already"}
	}
	m.pending = true
	s.watchers.Add(1)
	return m, nil
}

func (s *Supervisor) attempt(m *member, env []string) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	var join, backends []string
	for _, other := range s.members {
		if other.run == nil || !other.run.alive() {
			continue
		}
		if gossip := other.seen[child.AddressGossip]; gossip != "" {
			join = append(join, gossip)
		}
	}
	for _, other := range s.members {
		if other.role == RoleSignaling {
			backends = append(backends, other.seen[child.AddressHTTP])
		}
	}
	a := &attempt{free: portFree}
	space := s.options.host(m.name).Space
	if space != "" {
		a.free = unknownPort
	}
	a.command = command{
		binary: s.binary,
		space:  space,
		args:   append(m.args(join, backends, s.options, s.chooser(a)), s.watched(m.role)...),
		env:    append(s.environment(m.role), env...),
		stderr: m.log,
		later: func(r child.Report) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if a.moved = r.Addresses; !m.pending {
				m.seen = a.moved
			}
		},
	}
	return a
}

// chooser turns a port 0 into a port of ours, and replaces the port of an earlier run that somebody else has now. s.mu must be held.
func (s *Supervisor) chooser(a *attempt) func(address, earlier string) string {
	return func(address, earlier string) string {
		host, port, err := net.SplitHostPort(address)
		if err != nil || port != "0" {
			return address
		}
		chosen := earlier
		if chosen == "" || a.free(chosen) != nil {
			chosen = s.ports.at(host, a.free)
		}
		a.given = append(a.given, chosen)
		return chosen
	}
}

func (s *Supervisor) clusterName() string {
	if s.options.Redis == "" {
		return pin.DefaultCluster
	}
	return s.secrets.cluster
}

// watched is what a Sentinel watches, and where it may write. s.mu must be held.
func (s *Supervisor) watched(role Role) []string {
	if role != RoleSentinel {
		return nil
	}
	return []string{"--master", s.storeAddress(), "--dir", s.logs.path}
}

// s.mu must be held.
func (s *Supervisor) storeAddress() string {
	for _, m := range s.members {
		if m.role == RoleStore {
			return m.seen[child.AddressStore]
		}
	}
	return ""
}

// Not in arguments, which every process list shows.
func (s *Supervisor) environment(role Role) []string {
	store := s.options.Redis
	if address := s.storeAddress(); address != "" {
		store = "redis://" + address
	}
	var sentinels []string
	for _, m := range s.members {
		if address := m.seen[child.AddressSentinel]; address != "" {
			sentinels = append(sentinels, address)
		}
	}
	if len(sentinels) > 0 {
		store = "redis+sentinel://" + strings.Join(sentinels, ",") + "/" + SentinelMaster
	}
	env := []string{
		"HOLDFAST_CLUSTER=" + s.clusterName(),
		"HOLDFAST_CLUSTER_KEY=" + s.secrets.clusterKey,
		"HOLDFAST_API_KEYS=" + s.secrets.access.Key + ":" + s.secrets.access.Secret,
		"HOLDFAST_STORE=" + store,
	}
	if role == RoleSFU && s.options.RoomPeople > 0 {
		env = append(env, fmt.Sprintf("HOLDFAST_ROOM_PEOPLE=%d", s.options.RoomPeople))
	}
	if role == RoleSFU && s.options.Standby {
		env = append(env, "HOLDFAST_STANDBY=true")
	}
	if role == RoleSignaling && loopbackPage(s.options.Listen) {
		env = append(env, child.SupervisorEnv+"="+s.control, child.SupervisorTokenEnv+"="+s.secrets.control)
	}
	return env
}

// loopbackPage reports whether the page is served to this machine only, so that its button may kill media nodes. An empty address will be
// loopback.
func loopbackPage(listen string) bool {
	if listen == "" {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// After SIGKILL, kill waits for the end.
func (s *Supervisor) kill(ctx context.Context, name string, sig syscall.Signal) error {
	s.mu.Lock()
	m, err := s.find(name)
	if err == nil && (m.run == nil || !m.run.alive()) {
		err = &refusal{ErrConflict, name + " is not running"}
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	run := m.run
	s.mu.Unlock()
	if err := run.signal(sig); err != nil || sig != syscall.SIGKILL {
		return err
	}
	select {
	case <-run.ended:
		return nil
	case <-ctx.Done():
		return errors.Join(ctx.Err(), fmt.Errorf("%s was killed but has not ended", name))
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
