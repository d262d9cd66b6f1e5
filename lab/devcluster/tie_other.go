//go:build !linux

package devcluster

import "os/exec"

// The inherited pipe ends the child.
func tieToParent(*exec.Cmd) {}

func become(string, []string, []string) error { return ErrNoSentinels }
