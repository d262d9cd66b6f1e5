package signaling

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestTheWayOfMediaIsLogged(t *testing.T) {
	var said bytes.Buffer
	s := &session{server: &Server{pathLogs: loglimit.New(0, 3)}, log: slog.New(slog.NewTextHandler(&said, nil))}
	yes, no := true, false
	s.logPath(nil)
	s.logPath(&wire.MediaPath{Way: wire.WayTCP, UDP: &no, TCP: &yes})
	s.logPath(&wire.MediaPath{UDP: &no, TURN: &no})
	for range 10 {
		s.logPath(&wire.MediaPath{Way: wire.WayUDP, UDP: &yes})
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	wants := []string{
		`msg="client's media goes by another way" way=TCP udp="no answer" tcp=answered turn="not tried"`,
		`msg="client's media finds no way to its node" way="" udp="no answer" tcp="not tried" turn="no answer"`,
		`way=UDP udp=answered`,
	}
	if len(lines) != len(wants) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(wants), said.String())
	}
	for i, want := range wants {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d is %s, want %s", i, lines[i], want)
		}
	}
}
