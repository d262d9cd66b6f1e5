package cli

import (
	"fmt"
	"os"
	process "os/exec" // exec is a helper of this package's tests
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// saySlack is a process that sets its timer slack and says what its threads have.
func saySlack(text string) {
	slack, err := time.ParseDuration(text)
	if err == nil {
		err = setTimerSlack(slack)
	}
	fmt.Print(os.Getpid(), err)
	var threads, all sync.WaitGroup
	said := make(chan int, 8)
	threads.Add(cap(said))
	for range cap(said) {
		all.Go(func() {
			runtime.LockOSThread()
			threads.Done()
			threads.Wait() // Each has a thread of its own.
			present, _ := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
			said <- present
		})
	}
	all.Wait()
	for range cap(said) {
		fmt.Print(" ", <-said)
	}
}

// TestTimerSlackIsOfAllThreads, also of those that there were before it was set; and the process stays the same.
func TestTimerSlackIsOfAllThreads(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := process.CommandContext(t.Context(), program)
	child.Env = append(os.Environ(), slackEnv+"=777us")
	said, err := child.Output()
	want := fmt.Sprint(child.Process.Pid, error(nil))
	for range 8 {
		want += " 777000"
	}
	if string(said) != want || err != nil {
		t.Errorf("the process says %q (%v), want %q", said, err, want)
	}
}
