//go:build !unix

package failpoint

// There is no SIGSTOP here.
func stopSelf() { select {} }
