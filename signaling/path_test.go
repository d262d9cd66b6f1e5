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
	log, limit := slog.New(slog.NewTextHandler(&said, nil)), loglimit.New(0, 3)
	yes, no := true, false
	logPath(log, limit, nil, "sfu-1")
	logPath(log, limit, &wire.MediaPath{Way: wire.WayTCP, UDP: &no, TCP: &yes}, "sfu-1")
	logPath(log, limit, &wire.MediaPath{UDP: &no, TURN: &no}, "sfu-1")
	for range 10 {
		logPath(log, limit, &wire.MediaPath{Way: wire.WayUDP, UDP: &yes}, "sfu-1")
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
