package node

import (
	"fmt"
	"os"
	process "os/exec" // exec is a helper of this package's tests
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// diesBy is the signal that this process gets when its parent dies. Package variables are made on the first thread.
var diesBy = func() (sig int32) {
	_ = unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&sig)), 0, 0, 0) // 0 says it
	return sig
}()

// saySlack is a process that sets its timer slack on another thread than the first, and says what its threads have.
func saySlack(text string) {
	runtime.LockOSThread()
	slack, err := time.ParseDuration(text)
	if err == nil {
		set := make(chan error)
		go func() { set <- setTimerSlack(slack, true) }()
		err = <-set
	}
	fmt.Print(os.Getpid(), err, " ", diesBy)
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

// TestTimerSlackIsOfAllThreads, also of those that there were before it was set; and the process stays the same and goes
// on to die with its parent.
func TestTimerSlackIsOfAllThreads(t *testing.T) {
	runtime.LockOSThread() // The parent is a thread.
	defer runtime.UnlockOSThread()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := process.CommandContext(t.Context(), program)
	child.Env = append(os.Environ(), slackEnv+"=777us")
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := child.Output()
	want := fmt.Sprint(child.Process.Pid, error(nil), " ", int(syscall.SIGKILL))
	for range 8 {
		want += " 777000"
	}
	if string(said) != want || err != nil {
		t.Errorf("the process says %q (%v), want %q", said, err, want)
	}
}
