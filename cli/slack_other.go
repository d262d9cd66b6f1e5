//go:build !linux

package cli

import "time"

// setTimerSlack does nothing: other systems than Linux have no such thing.
func setTimerSlack(time.Duration, bool) error { return nil }
