//go:build !race

package testkit

// Race says that the race detector is on. It makes code ten times slower, so what searches at random searches less.
const Race = false
