package headroom

import (
	"fmt"
	"math"
	"math/bits"
)

// Egress is a rate of outgoing media, in two dimensions.
type Egress struct {
	BitsPerSecond    uint64 `json:"bitsPerSecond"`
	PacketsPerSecond uint64 `json:"packetsPerSecond"`
}

func (e Egress) String() string {
	return fmt.Sprintf("%.1f Mbit/s and %d packets/s", float64(e.BitsPerSecond)/1e6, e.PacketsPerSecond)
}

// Plus returns the sum. It stops at the largest number instead of overflowing.
func (e Egress) Plus(f Egress) Egress {
	return Egress{added(e.BitsPerSecond, f.BitsPerSecond), added(e.PacketsPerSecond, f.PacketsPerSecond)}
}

func added(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// Minus returns the difference, but never less than zero.
func (e Egress) Minus(f Egress) Egress {
	return Egress{e.BitsPerSecond - min(e.BitsPerSecond, f.BitsPerSecond), e.PacketsPerSecond - min(e.PacketsPerSecond, f.PacketsPerSecond)}
}

// Min returns the smaller value of each dimension.
func (e Egress) Min(f Egress) Egress {
	return Egress{min(e.BitsPerSecond, f.BitsPerSecond), min(e.PacketsPerSecond, f.PacketsPerSecond)}
}

// Max returns the larger value of each dimension.
func (e Egress) Max(f Egress) Egress {
	return Egress{max(e.BitsPerSecond, f.BitsPerSecond), max(e.PacketsPerSecond, f.PacketsPerSecond)}
}

// Times returns n times e. It may overflow.
func (e Egress) Times(n uint64) Egress {
	return Egress{e.BitsPerSecond * n, e.PacketsPerSecond * n}
}

// Part returns a part of e. part is between 0 and 1.
func (e Egress) Part(part float64) Egress {
	return Egress{uint64(float64(e.BitsPerSecond) * part), uint64(float64(e.PacketsPerSecond) * part)}
}

// Fits reports whether e is within the ceiling in both dimensions.
func (e Egress) Fits(ceiling Egress) bool {
	return e.BitsPerSecond <= ceiling.BitsPerSecond && e.PacketsPerSecond <= ceiling.PacketsPerSecond
}

// Share returns e/ceiling in the dimension in which that is larger. The ceiling must not be zero.
func (e Egress) Share(ceiling Egress) float64 {
	return max(float64(e.BitsPerSecond)/float64(ceiling.BitsPerSecond), float64(e.PacketsPerSecond)/float64(ceiling.PacketsPerSecond))
}

// Into returns how many times e fits into left, in the dimension in which that is smaller. A zero of e counts as 1.
func (e Egress) Into(left Egress) float64 {
	return min(float64(left.BitsPerSecond)/float64(max(e.BitsPerSecond, 1)), float64(left.PacketsPerSecond)/float64(max(e.PacketsPerSecond, 1)))
}
