//go:build !linux

package load

import (
	"errors"
	"time"
)

// cpuTime is not known here.
func cpuTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

// residentBytes is not known here.
func residentBytes() int64 { return 0 }
