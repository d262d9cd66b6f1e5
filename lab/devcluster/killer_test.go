package devcluster

import (
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/child"
)

func TestOnlySignalingNodesOfALoopbackPageMayKill(t *testing.T) {
	for listen, want := range map[string]bool{
		"": true, "127.0.0.1:7880": true, "localhost:0": true, "[::1]:1": true,
		":7880": false, "0.0.0.0:7880": false, "192.0.2.7:7880": false, "example.org:80": false,
	} {
		s := New(Options{Listen: listen})
		for _, role := range []Role{RoleSFU, RoleSignaling, RoleFront, RoleStore} {
			told := strings.Contains(strings.Join(s.environment(role), "\n"), child.SupervisorTokenEnv)
			if told != (want && role == RoleSignaling) {
				t.Errorf("page on %q: %s is told: %t", listen, role, told)
			}
		}
	}
}
