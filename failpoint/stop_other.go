//go:build !unix

package failpoint

// stopSelf blocks the goroutine: there is no SIGSTOP here.
func stopSelf() { select {} }
