package cluster

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/pin"
)

// OlderBootError means that the cluster knows a newer boot of this node's name, because the machine's clock was set back in between.
// The process must begin anew with a boot id above Newer, or it counts as older than its former life.
type OlderBootError struct{ Newer pin.BootID }

// Error names the newer boot.
func (e *OlderBootError) Error() string {
	return fmt.Sprintf("the cluster knows a newer boot of this node, %s", e.Newer)
}

// startup looks for newer boots of this process's name until the first exchange of states with another member. Such a boot can only be
// a former life of the node then. One that appears later is another process under the same name, to which this one gives way.
// The loop owns it.
type startup struct {
	self Node
	// newer is the highest boot of the name that was heard of.
	newer pin.BootID
	over  bool
}

func (s *startup) hear(node Node) {
	if node.Name() == s.self.Name() && node.Boot.Newer(max(s.newer, s.self.Boot)) {
		s.newer = node.Boot
	}
}

// met ends the search with the first state of another member. It returns the newer boot, if one was found.
func (s *startup) met(state []message) (newer pin.BootID, found bool) {
	if s.over || len(state) == 0 || state[0].kind != kindHello || state[0].from.Boot == s.self.Boot {
		return "", false
	}
	s.over = true
	return s.newer, s.newer != ""
}
