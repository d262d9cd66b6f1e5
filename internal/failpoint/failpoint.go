// Package failpoint lets a test stop a process at a named step. A step calls
// Hit("place.after-claim"); the process that was started with
//
//	HOLDFAST_FAILPOINTS="place.after-claim=exit,rehome.after-swap=hang"
//
// does there what the list says, after a line on standard error:
//
//	exit  SIGKILL to itself: no deferred call runs, no connection is closed politely
//	stop  SIGSTOP to itself: the process freezes until somebody sends SIGCONT
//	hang  the goroutine that hit it blocks for ever, the rest of the process goes on
//
// The variable is read once, at the first Hit. Without it Hit is one atomic load
// and a nil check. An entry that cannot be read is reported on standard error, because
// a test whose failpoint silently does nothing would pass for the wrong reason.
//
// The steps between claim, open, compare-and-set and notify, and of a sweep of leases:
//
//	place.after-claim    a fresh claim was written, nobody opened the room yet
//	rehome.before-swap   a new pin was chosen, the old one still stands
//	rehome.after-swap    the new pin stands, nobody was told
//	open.after           the new owner opened the room (placed by signaling)
//	notify.before        clients are about to be told to restart (placed by failover)
//	sweep.before         lapsed leases are about to be taken out (presence)
//	sweep.between        some of half of the shards were
//	sweep.evicted        some of the other half were, and nothing was done about it yet
//
// The package imports nothing of this module, so that any other may use it.
package failpoint

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// Variable is the environment variable that lists the failpoints.
const Variable = "HOLDFAST_FAILPOINTS"

type action string

const (
	exit action = "exit"
	stop action = "stop"
	hang action = "hang"
)

// armed is nil in every process that is not under test.
var armed = sync.OnceValue(func() map[string]action { //nolint:gochecknoglobals // the environment is global too, and it is read only once
	list, faults := parse(os.Getenv(Variable))
	for _, fault := range faults {
		fmt.Fprintf(os.Stderr, "%s: %s\n", Variable, fault)
	}
	return list
})

// Hit does what the environment says of this step, which is usually nothing.
func Hit(name string) {
	if list := armed(); list != nil {
		act(name, list[name])
	}
}

func act(name string, a action) {
	if a != "" {
		fmt.Fprintf(os.Stderr, "failpoint %s: %s\n", name, a)
	}
	switch a {
	case exit:
		process, err := os.FindProcess(os.Getpid())
		if err == nil {
			// A process cannot refuse a SIGKILL of its own.
			_ = process.Kill()
		}
		// The signal may arrive a moment later, so this goroutine waits for it.
		select {}
	case stop:
		stopSelf()
	case hang:
		select {}
	}
}

func parse(text string) (list map[string]action, faults []string) {
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, what, _ := strings.Cut(entry, "=")
		switch a := action(what); {
		case name == "":
			faults = append(faults, fmt.Sprintf("%q names no failpoint", entry))
		case a != exit && a != stop && a != hang:
			faults = append(faults, fmt.Sprintf("%q: the action must be exit, stop or hang", entry))
		default:
			if list == nil {
				list = make(map[string]action)
			}
			list[name] = a
		}
	}
	return list, faults
}
