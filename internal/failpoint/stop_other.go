//go:build !unix

package failpoint

// stopSelf blocks its goroutine, because this system has no SIGSTOP.
func stopSelf() { select {} }
