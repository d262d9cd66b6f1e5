//go:build !linux

package node

import "time"

// setTimerSlack does nothing: other systems than Linux have no such thing.
func setTimerSlack(time.Duration, bool) error { return nil }
