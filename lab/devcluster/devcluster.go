// Package devcluster runs a whole cluster on one machine, every node a process
// of its own so that it can be killed for real. It is what `holdfast dev` does,
// and what tests start to get a cluster.
//
// It promises that no child outlives its supervisor, however that ends, and that
// a node which died stays dead until somebody asks for it. It knows the command
// lines of the roles and what they report about themselves; it does not know
// what they do.
package devcluster

import "syscall"

// Role is what a child process does.
type Role string

// The roles of children.
const (
	RoleStore     Role = "store"
	RoleSFU       Role = "sfu"
	RoleSignaling Role = "signaling"
	RoleFront     Role = "front"
)

// State is where a child is in its life.
type State string

// The states of a child.
const (
	StateStarting State = "starting" // it has not reported its addresses yet
	StateRunning  State = "running"
	StateDead     State = "dead" // it ended; it stays so until it is asked for
)

// The keys of Node.Addresses.
const (
	AddressHTTP    = "http"
	AddressTURN    = "turn"
	AddressTURNTLS = "turns"
	AddressControl = "control"
	AddressMedia   = "media"
	AddressGossip  = "gossip"
	AddressStore   = "store"
)

// Node is one child as the supervisor sees it.
type Node struct {
	Name      string            `json:"name"`
	Role      Role              `json:"role"`
	State     State             `json:"state"`
	Pid       int               `json:"pid"` // of the latest run
	Starts    int               `json:"starts"`
	Addresses map[string]string `json:"addresses,omitempty"` // host:port by kind
	Ended     string            `json:"ended,omitempty"`     // how the latest run ended, in words
}

// Status is the whole cluster as the supervisor sees it.
type Status struct {
	Page   string `json:"page"`            // the address of the page, through the front
	Ready  bool   `json:"ready"`           // it was up once, and people can join now
	Lacks  []Role `json:"lacks,omitempty"` // the roles without a process that runs: nobody can join without each of them
	Pid    int    `json:"pid"`             // of the supervisor
	Name   string `json:"cluster"`         // as --cluster of its nodes
	LogDir string `json:"logDir"`
	Nodes  []Node `json:"nodes"`
}

// Access is the API key that the cluster of this run accepts.
type Access struct {
	Key    string `json:"key"`
	Secret string `json:"secret"`
}

type (
	killRequest struct {
		Signal syscall.Signal `json:"signal"`
	}
	startRequest struct {
		Env []string `json:"env,omitempty"` // KEY=VALUE, for this run only
	}
)
