//go:build long && linux

package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// coturn is a TURN server that is not ours.
type coturn struct {
	program, ip, port, dir, secret string
	process                        *exec.Cmd
	said                           bytes.Buffer
}

// TestCallsThroughCoturn is a call of two browsers that reach nothing but a coturn, one over TCP, one over UDP. It takes the
// passwords that signaling nodes make from the shared secret, and relays to the media nodes' address only. The call's media node is
// killed, then the coturn, which is started again. It prints the gaps.
func TestCallsThroughCoturn(t *testing.T) {
	needChromium(t, 3)
	server := newCoturn(t, ownAddress(t))
	server.start(t)
	env := []string{"HOLDFAST_ICE_SERVER=" + server.url("udp") + "," + server.url("tcp"), "HOLDFAST_ICE_SECRET=" + server.secret}
	c := startCluster(t, devcluster.Options{MediaHost: server.ip, NodeEnv: map[string][]string{"signaling-1": env, "signaling-2": env}})
	room := roomOn(t, "sfu-1", "coturn")
	began := time.Now()
	people := []*participant{
		join(t, c.URL(), room, "Ada", url.Values{"relay": {"tcp"}}),
		join(t, c.URL(), room, "Alan", url.Values{"relay": {"udp"}}),
	}
	paths := []string{server.url("tcp"), server.url("udp")}
	for _, p := range people {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, people)
	t.Logf("both decode each other %v after the browsers were started", time.Since(began).Round(time.Millisecond))
	for i, p := range people {
		p.goesThrough(t, paths[i])
		p.mark(t)
		p.watchFrames(t)
	}
	gaps := func(what string, keeps func(*participant, *testing.T)) {
		t.Helper()
		allDecodeAll(t, time.Minute, people)
		for i, p := range people {
			keeps(p, t)
			p.goesThrough(t, paths[i])
			t.Logf("%s: %v without a new frame while %s", p.name, p.longestFrameGap(t).Round(time.Millisecond), what)
			p.mustEval(t, "(() => { globalThis.__gap = 0; })()", nil)
		}
	}
	before := []callStats{people[0].mustStats(t), people[1].mustStats(t)}
	kill(t, c, "sfu-1")
	for i, p := range people {
		p.awaitsMove(t, before[i], "restart")
	}
	gaps("its media node died", (*participant).unchanged)
	server.stop()
	server.start(t)
	gaps("the coturn died and came back", (*participant).sameElements)
}

// goesThrough waits until media goes by the server of this URL.
func (p *participant) goesThrough(t *testing.T, server string) {
	t.Helper()
	eventually(t, time.Minute, p.name+"'s media goes through "+server, func() error {
		var now string
		err := p.eval(`(async () => {
		  const stats = await __connections.findLast((pc) => pc.connectionState !== 'closed').getStats();
		  const transport = [...stats.values()].find(({ type }) => type === 'transport');
		  const local = stats.get(stats.get(transport?.selectedCandidatePairId)?.localCandidateId);
		  return local?.candidateType === 'relay' ? String(local.url) : String(local?.candidateType);
		})()`, &now)
		if err == nil && now != server {
			err = fmt.Errorf("it goes through %s", now)
		}
		return err
	})
}

func newCoturn(t *testing.T, ip string) *coturn {
	t.Helper()
	free, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	s := &coturn{program: tool.Find(t, "turnserver"), ip: ip, port: port, dir: t.TempDir(), secret: strings.Repeat("a shared secret", 3)}
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("coturn:\n%s", tail(s.said.String(), 60))
		}
	})
	return s
}

func (s *coturn) url(transport string) string {
	return "turn:" + net.JoinHostPort(s.ip, s.port) + "?transport=" + transport
}

// start returns when it listens.
func (s *coturn) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command(s.program, "-n", "--listening-ip="+s.ip, "--relay-ip="+s.ip, "--listening-port="+s.port, "--realm=example.org", //nolint:gosec // a listed tool
		"--use-auth-secret", "--static-auth-secret="+s.secret, "--denied-peer-ip=0.0.0.0-255.255.255.255", "--allowed-peer-ip="+s.ip,
		"--no-tls", "--no-dtls", "--no-cli", "--userdb="+filepath.Join(s.dir, "db"), "--pidfile="+filepath.Join(s.dir, "pid"), "--log-file=stdout", "--simple-log")
	s.process.Stdout, s.process.Stderr = &s.said, &s.said
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "coturn listens", func() error {
		conn, err := net.Dial("tcp", net.JoinHostPort(s.ip, s.port))
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

func (s *coturn) stop() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}
