//go:build !unix

package sfu

import "time"

func processorTime() (time.Duration, bool) { return 0, false }
