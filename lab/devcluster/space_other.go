//go:build !linux

package devcluster

import "errors"

// inSpace refuses: there are no network namespaces here.
func inSpace(string, func() error) error { return errors.New("this system has no network namespaces") }
