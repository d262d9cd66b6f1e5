// Package devcluster runs a cluster on one machine, every node a process that can be killed for real, for `holdfast dev` and tests.
//
// It promises that no child outlives its supervisor, and that a dead node stays dead until somebody starts it. A state file that its
// user alone can read leads other processes to the supervisor.
//
// It knows the command lines of nodes and what they report (internal/child), and nothing of what happens in them. Begin with Start for a
// test, Supervisor.Run for the command line, and Find for a cluster that runs.
package devcluster

// Role is what a child process does.
type Role string

// The roles.
const (
	RoleStore     Role = "store"
	RoleSentinel  Role = "sentinel"
	RoleSFU       Role = "sfu"
	RoleSignaling Role = "signaling"
	RoleFront     Role = "front"
)

// State is a child's state.
type State string

// The states.
const (
	StateStarting State = "starting" // no addresses reported yet
	StateRunning  State = "running"
	StateDead     State = "dead"
)

// Node is a child as the supervisor sees it.
type Node struct {
	Name      string            `json:"name"`
	Role      Role              `json:"role"`
	State     State             `json:"state"`
	Pid       int               `json:"pid"`
	Starts    int               `json:"starts"`
	Addresses map[string]string `json:"addresses,omitempty"` // as child.Report has them
	Ended     string            `json:"ended,omitempty"`     // the latest run's end
}

// Status is the cluster as the supervisor sees it.
type Status struct {
	Page   string `json:"page"`            // through the front
	Ready  bool   `json:"ready"`           // people can join
	Lacks  []Role `json:"lacks,omitempty"` // a join needs all roles
	Pid    int    `json:"pid"`             // of the supervisor
	Name   string `json:"cluster"`
	LogDir string `json:"logDir"`
	Nodes  []Node `json:"nodes"`
}

// Access is this run's API key.
type Access struct {
	Key    string `json:"key"`
	Secret string `json:"secret"`
}

type startRequest struct {
	Env []string `json:"env,omitempty"` // KEY=VALUE, for this run
}
