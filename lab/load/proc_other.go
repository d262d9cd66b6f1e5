//go:build !linux

package load

import (
	"errors"
	"time"
)

func cpuTime(int) (time.Duration, error) { return 0, errors.ErrUnsupported }

func residentBytes() int64 { return 0 }
