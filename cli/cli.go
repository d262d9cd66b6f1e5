// Package cli is the command line: one verb for each role and each operator's
// question. What a process is stands in node; this package starts it.
//
// It promises that a flag and its environment variable share one name
// (--cluster-key is HOLDFAST_CLUSTER_KEY), that a configuration is refused with
// every fault at once, and that each error ends in a sentence and an exit code: 0
// done, 1 failed, 2 wrong usage or configuration, 3 an address is in use.
//
// A verb is a struct whose fields are its flags, and a Run method. The package owns
// the process: its signals, its standard streams and its exit. It does not know
// how rooms are placed or how media is forwarded. Built with the tag node, it has no
// verbs of the lab. Begin with commands and run.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/node"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitInUse  = 3
)

type commands struct {
	labCommands

	Nodes   nodesCommand   `cmd:"" group:"look" help:"List the nodes: state, load, version."`
	Rooms   roomsCommand   `cmd:"" group:"look" help:"List the open rooms: where they are, and who is in them."`
	Events  eventsCommand  `cmd:"" group:"look" help:"Say what happened: deaths, moves, how long people had no media."`
	Explain explainCommand `cmd:"" group:"look" help:"Say why a room lives where it lives."`

	Drain   drainCommand   `cmd:"" group:"change" help:"Empty a media node while people talk, then end it."`
	Undrain undrainCommand `cmd:"" group:"change" help:"Let a draining media node take rooms again."`
	Move    moveCommand    `cmd:"" group:"change" help:"Move a room to another media node while people talk."`
	Spread  spreadCommand  `cmd:"" group:"change" help:"Have another media node carry some of a large room's people, too."`
	Gather  gatherCommand  `cmd:"" group:"change" help:"Bring a room's people back from the nodes that help to carry it."`
	Remove  removeCommand  `cmd:"" group:"change" help:"Take somebody, or everybody, out of a room."`

	Token tokenCommand `cmd:"" group:"keys" help:"Make an access token."`
	Keys  keysCommand  `cmd:"" group:"keys" help:"Change a file of keys, one step of a rotation at a time."`

	SFU       sfuCommand       `cmd:"" group:"node" name:"sfu" help:"Run a media node."`
	Signaling signalingCommand `cmd:"" group:"node" help:"Run a signaling node: the page, the API, the clients' WebSockets."`
	Front     balancerCommand  `cmd:"" group:"node" help:"Run the small TCP balancer of development and compose clusters."`
	Health    healthCommand    `cmd:"" group:"node" help:"Ask an address whether it is healthy, in containers without a shell."`

	Ring       ringCommand       `cmd:"" group:"other" help:"Work out on paper how evenly a ring spreads rooms."`
	Completion completionCommand `cmd:"" group:"other" help:"Print what bash, zsh or fish needs to complete verbs and flags."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Say what a word can become."`
	Version    versionCommand    `cmd:"" group:"other" help:"Say which build this is."`
}

// streams is where a command speaks. Results go to out, all else to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
	own      bool // the process has nothing else to do than the command
	// terminate receives each SIGTERM, if the verb drains.
	terminate <-chan os.Signal
}

// Main runs the command line of this process and exits.
func Main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, own: true}))
}

// newParser makes the flags and variables of root's fields. A default such as ${max_sockets} is what node.Defaults says.
func newParser(root *commands, s streams, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(root, append(more,
		kong.Name(invocation.Name()),
		kong.Description("Holdfast runs browser video calls on a cluster of media nodes; a call survives the death of its node."),
		kong.Writers(s.out, s.err),
		kong.Help(printHelp),
		kong.DefaultEnvars("HOLDFAST"),
		kong.Vars(node.Defaults()), labVars(),
	)...)
}

func run(ctx context.Context, args []string, s streams) int {
	if slices.Equal(args, []string{"--version"}) {
		args = []string{"version"}
	}
	var root commands
	helped := false
	parser, err := newParser(&root, s, kong.Exit(func(int) { helped = true }))
	if err != nil {
		fmt.Fprintf(s.err, "%s: %v\n", invocation.Name(), err)
		return exitFailed
	}
	args = helpIsAsked(args)
	parsed, err := parser.Parse(args)
	switch {
	case helped: // What comes after the flag does not matter.
		return exitDone
	case err != nil:
		wrongUsage(s.err, parser.Model, args, err)
		return exitUsage
	}
	_, draining := reflect.TypeAssert[drains](parsed.Selected().Target.Addr())
	ctx, terminate, stop := untilSignalled(ctx, draining)
	defer stop()
	s.terminate = terminate
	parsed.BindTo(ctx, (*context.Context)(nil))
	parsed.Bind(s)
	if err := parsed.Run(); err != nil {
		if code, ok := spokenFor(err); ok {
			return code
		}
		fmt.Fprintf(s.err, "%s %s: %s\n", invocation.Name(), strings.TrimSuffix(parsed.Selected().Path(), " up"), sentence(err))
		return exitCode(err)
	}
	return exitDone
}

// usageError is one thing that a person has to give.
type usageError struct{ text string }

// Error is the sentence.
func (e *usageError) Error() string { return e.text }

func exitCode(err error) int {
	var wrong *node.FaultsError
	var usage *usageError
	switch {
	case errors.As(err, &wrong), errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, syscall.EADDRINUSE):
		return exitInUse
	default:
		return exitFailed
	}
}

// sentence adds what to do about an error, where that is known.
func sentence(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return err.Error() + "\nAnother process uses this address: end it, or choose another with the flag."
	case errors.Is(err, syscall.EACCES):
		return err.Error() + "\nThis user may not do that; ports below 1024 need a privilege."
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return err.Error() + "\nThis machine does not have that address."
	default:
		return err.Error()
	}
}
