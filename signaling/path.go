package signaling

import "github.com/holdfast-rtc/holdfast/signaling/wire"

// Lines about the ways of media; clients choose how many.
const pathLogsPerSecond, pathLogBurst = 5, 100

// logPath logs the way of a client's media. Clients tell at once what is not UDP, and once that there is none.
func (s *session) logPath(path *wire.MediaPath) {
	if path == nil {
		return
	}
	unlogged, ok := s.server.pathLogs.Next()
	if !ok {
		return
	}
	says := "client's media goes by another way"
	if path.Way == "" {
		says = "client's media finds no way to its node"
	}
	s.log.Info(says, "way", path.Way, "udp", answered(path.UDP), "tcp", answered(path.TCP), "turn", answered(path.TURN), "node", s.pin.Node, "unlogged", unlogged)
}

func answered(by *bool) string {
	switch {
	case by == nil:
		return "not tried"
	case *by:
		return "answered"
	default:
		return "no answer"
	}
}
