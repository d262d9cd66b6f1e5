//go:build !race

package testkit

// Race says that the race detector is on, which makes code ten times slower.
const Race = false
