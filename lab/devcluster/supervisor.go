package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/internal/tty"
)

// The supervisor's refusals.
var (
	ErrNoSuchNode = errors.New("no such node")
	ErrConflict   = errors.New("the node is not in the state for that")
	ErrEnding     = errors.New("the cluster is ending")
)

// Supervisor runs one cluster.
type Supervisor struct {
	options Options
	secrets secrets
	spawner *spawner
	out     *terminal
	binary  string
	logs    *runDir
	stop    chan struct{} // closed by Stop
	onReady func(page string) error
	// paint colours what is shown to people.
	paint    func(style tty.Style, text string) string
	follower *follower

	stopOnce sync.Once
	watchers sync.WaitGroup // of children's runs

	mu      sync.Mutex // guards the fields below
	members []*member  // by first start
	ports   *ports
	page    string
	control string // host:port
	ready   bool
	ending  bool
}

// New prepares a cluster; Run runs it.
func New(o Options) *Supervisor {
	return &Supervisor{
		options: o, secrets: newSecrets(), spawner: newSpawner(), stop: make(chan struct{}),
		ports:   newPorts(),
		onReady: func(string) error { return nil },
	}
}

// Access is what opens the cluster's rooms.
func (s *Supervisor) Access() Access { return s.secrets.access }

// OnReady calls f with the page's host:port when the cluster is ready. Call it before Run.
func (s *Supervisor) OnReady(f func(page string) error) { s.onReady = f }

// Run keeps the cluster up until ctx ends or Stop is called; then it ends every child.
func (s *Supervisor) Run(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return err
	}
	defer s.logs.remove()
	s.out = newTerminal(s.options.Out)
	defer s.out.close()
	s.paint = tty.Paint(tty.Colors(s.options.Out))
	s.follower = newFollower(s, s.paint)
	s.out.printf("Holdfast starts %s ...\n", s.options.parts())

	spawning, endSpawning := context.WithCancel(context.WithoutCancel(ctx))
	go s.spawner.run(spawning)
	defer func() { endSpawning(); <-s.spawner.done }()
	defer s.endAll()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	closeAPI, err := s.serveAPI(ctx)
	if err != nil {
		return err
	}
	defer closeAPI()
	go func() {
		select {
		case <-s.stop:
			cancel(ErrEnding)
		case <-ctx.Done():
		}
	}()
	if err := s.bringUp(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	s.follower.run(ctx)
	s.out.printf("\nHoldfast ends the cluster.\n")
	return nil
}

func (s *Supervisor) prepare() error {
	if err := s.options.Validate(); err != nil {
		return err
	}
	s.binary = s.options.Binary
	if s.binary == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the holdfast binary: %w", err)
		}
		s.binary = self
	}
	logs, err := makeRunDir("holdfast-logs-")
	s.logs = logs
	return err
}

// Stop asks Run to end.
func (s *Supervisor) Stop() { s.stopOnce.Do(func() { close(s.stop) }) }

// Under the lock, two adds get different names.
func (s *Supervisor) add(role Role, name func(count int) string) (*member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, m := range s.members {
		if m.role == role {
			count++
		}
	}
	if count >= maxNodes {
		return nil, fmt.Errorf("there are %d nodes of role %s already: that is the most one machine runs here", count, role)
	}
	m := &member{name: name(count), role: role}
	n := &narrator{name: m.name, verbose: s.options.Verbose, out: s.out}
	log, err := openLogbook(s.logs.path, m.name, n.show)
	if err != nil {
		return nil, err
	}
	m.log = log
	s.members = append(s.members, m)
	return m, nil
}

func (s *Supervisor) addSFU(ctx context.Context, env []string) (Node, error) {
	if len(s.options.Hosts) > 0 {
		return Node{}, errNoHost
	}
	m, err := s.add(RoleSFU, func(count int) string { return fmt.Sprintf("sfu-%d", count+1) })
	if err != nil {
		return Node{}, err
	}
	return s.start(ctx, m.name, env)
}

// s.mu must be held.
func (s *Supervisor) find(name string) (*member, error) {
	i := slices.IndexFunc(s.members, func(m *member) bool { return m.name == name })
	if i < 0 {
		var nodes []Node
		for _, m := range s.members {
			nodes = append(nodes, m.node())
		}
		slices.SortFunc(nodes, byRoleAndAge)
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		return nil, fmt.Errorf("%w: %q; there are %s", ErrNoSuchNode, name, strings.Join(names, ", "))
	}
	return s.members[i], nil
}

// Status describes the cluster.
func (s *Supervisor) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := Status{Page: s.page, Pid: os.Getpid(), LogDir: s.logs.path, Name: s.clusterName()}
	for _, m := range s.members {
		status.Nodes = append(status.Nodes, m.node())
	}
	slices.SortStableFunc(status.Nodes, byRoleAndAge)
	if s.ready {
		status.Lacks = lacks(status.Nodes)
		status.Ready = len(status.Lacks) == 0
	}
	return status
}

func lacks(nodes []Node) []Role {
	var lacking []Role
	for _, n := range nodes {
		runs := func(other Node) bool { return other.Role == n.Role && other.State == StateRunning }
		if !slices.Contains(lacking, n.Role) && !slices.ContainsFunc(nodes, runs) {
			lacking = append(lacking, n.Role)
		}
	}
	return lacking
}

func (s *Supervisor) endAll() {
	s.mu.Lock()
	s.ending = true
	var runs []*process
	for _, m := range s.members {
		if m.run != nil {
			runs = append(runs, m.run)
		}
	}
	s.mu.Unlock()
	var ends sync.WaitGroup
	for _, run := range runs {
		ends.Go(func() { run.end(endLimit) })
	}
	ends.Wait()
	s.watchers.Wait()
	for _, m := range s.members {
		m.log.close()
	}
}

func (s *Supervisor) watch(m *member, p *process) {
	<-p.ended
	s.mu.Lock()
	ending := s.ending
	s.mu.Unlock()
	if ending {
		return
	}
	now := time.Now()
	s.follower.processEnded(m.name, p, now)
	what := m.name + " has ended (" + p.how + ")."
	switch {
	case p.killed():
		what = m.name + " was killed."
	case p.cmd.ProcessState.Success():
		what = m.name + " has ended."
	}
	again := invocation.Name() + " dev start " + m.name
	s.out.printf("%s  %s Start it again: %s\n", s.paint(tty.Dim, clock(now)), s.paint(tty.Red, what), again)
}
