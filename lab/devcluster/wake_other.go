//go:build !unix

package devcluster

// wake does nothing here: no process can be stopped.
func wake(*process) {}
