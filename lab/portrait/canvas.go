package portrait

import (
	"image"
	"image/color"
	"math"
)

// canvas is a picture whose height is 1; its middle has x = 0, and its top y = 0.
type canvas struct {
	*image.RGBA

	scale float64 // pixels in a unit
}

// samples of a pixel along each axis smooth the edges.
const samples = 4

// region is an area of the canvas: a box around it, and what of the box belongs to it.
type region struct {
	left, top, right, bottom float64
	holds                    func(x, y float64) bool
}

func newCanvas(width, height int) *canvas {
	return &canvas{RGBA: image.NewRGBA(image.Rect(0, 0, width, height)), scale: float64(height)}
}

// paint lays a colour over the region; its alpha is not premultiplied.
func (c *canvas) paint(r region, colour color.NRGBA) {
	size := c.Bounds().Size()
	middle := float64(size.X) / 2
	for py := max(int(r.top*c.scale), 0); py < min(int(math.Ceil(r.bottom*c.scale)), size.Y); py++ {
		for px := max(int(middle+r.left*c.scale), 0); px < min(int(math.Ceil(middle+r.right*c.scale)), size.X); px++ {
			if part := c.coverage(r, float64(px)-middle, float64(py)); part > 0 {
				c.blend(px, py, colour, part*float64(colour.A)/0xff)
			}
		}
	}
}

func (c *canvas) coverage(r region, px, py float64) float64 {
	inside := 0
	for i := range samples * samples {
		x := (px + (float64(i%samples)+0.5)/samples) / c.scale
		y := (py + (float64(i/samples)+0.5)/samples) / c.scale
		if r.holds(x, y) {
			inside++
		}
	}
	return float64(inside) / (samples * samples)
}

func (c *canvas) blend(px, py int, over color.NRGBA, share float64) {
	under := c.RGBAAt(px, py)
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a)*(1-share) + float64(b)*share)) }
	c.SetRGBA(px, py, color.RGBA{R: mix(under.R, over.R), G: mix(under.G, over.G), B: mix(under.B, over.B), A: 0xff})
}

func ellipse(x, y, rx, ry float64) region {
	return region{x - rx, y - ry, x + rx, y + ry, func(px, py float64) bool {
		dx, dy := (px-x)/rx, (py-y)/ry
		return dx*dx+dy*dy <= 1
	}}
}

// leaf is an ellipse that is turned around its middle.
func leaf(x, y, rx, ry, angle float64) region {
	sin, cos := math.Sincos(angle)
	reach := max(rx, ry)
	return region{x - reach, y - reach, x + reach, y + reach, func(px, py float64) bool {
		dx, dy := px-x, py-y
		u, v := (dx*cos+dy*sin)/rx, (dy*cos-dx*sin)/ry
		return u*u+v*v <= 1
	}}
}

// box has round corners.
func box(left, top, right, bottom, corner float64) region {
	return region{left, top, right, bottom, func(px, py float64) bool {
		dx := max(left+corner-px, px-right+corner, 0)
		dy := max(top+corner-py, py-bottom+corner, 0)
		return dx*dx+dy*dy <= corner*corner
	}}
}

// curve is a line of a width along a parabola that goes through (x-reach, y), (x, y+depth) and (x+reach, y).
func curve(x, y, reach, depth, width float64) region {
	margin := width + math.Abs(depth)
	return region{x - reach - width, y - margin, x + reach + width, y + margin, func(px, py float64) bool {
		at := min(max(px, x-reach), x+reach)
		u := (at - x) / reach
		slope := -2 * depth * u / reach
		distance := (py - y - depth*(1-u*u)) / math.Sqrt(1+slope*slope)
		beyond := px - at
		return distance*distance+beyond*beyond <= width*width/4
	}}
}

// with is what both regions hold.
func (r region) with(other region) region {
	return region{max(r.left, other.left), max(r.top, other.top), min(r.right, other.right), min(r.bottom, other.bottom), func(x, y float64) bool {
		return r.holds(x, y) && other.holds(x, y)
	}}
}

// without is what only the first region holds.
func (r region) without(other region) region {
	return region{r.left, r.top, r.right, r.bottom, func(x, y float64) bool { return r.holds(x, y) && !other.holds(x, y) }}
}

func everywhere() region {
	return region{-2, -1, 2, 2, func(float64, float64) bool { return true }}
}
