package portrait

import (
	"image"
	"image/color"
)

// look is what makes a person.
type look struct {
	wall, decor, skin, hair, shirt color.NRGBA
	style                          style
	room                           room
	glasses, beard                 bool
}

type style int

const (
	short style = iota
	parted
	long
	bun
	curls
)

type room int

const (
	window room = iota
	shelf
	plant
	lamp
)

func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff} //nolint:gosec // the bytes of a colour
}

func shade(alpha uint8) color.NRGBA { return color.NRGBA{A: alpha} }

//nolint:gochecknoglobals // a table that nobody changes
var looks = [Faces]look{
	{rgb(0xc9d8d3), rgb(0x6f9488), rgb(0xf0c8a0), rgb(0x6b5a50), rgb(0x24507a), curls, window, true, false},
	{rgb(0xd9cbb2), rgb(0x8f7a55), rgb(0xf1cbad), rgb(0x4a3020), rgb(0x2f6f73), parted, shelf, false, false},
	{rgb(0xcbc3dc), rgb(0x776793), rgb(0xeabf9a), rgb(0x1f1714), rgb(0xa8324a), long, lamp, false, false},
	{rgb(0xc4d2bd), rgb(0x66845a), rgb(0xe5b48b), rgb(0x8a8078), rgb(0x7a4a2b), short, plant, true, true},
	{rgb(0xbfd0db), rgb(0x557488), rgb(0x8d5a3b), rgb(0x17110e), rgb(0xd08a2e), bun, shelf, true, false},
	{rgb(0xe0cabb), rgb(0x9a7562), rgb(0x6b432c), rgb(0x0f0c0a), rgb(0x3f6b4f), short, window, false, false},
}

// pose is how a person is at one moment.
type pose struct {
	sway  int // of the head, from -sways to sways
	blink bool
	mouth int // 0 is closed, mouths-1 wide open
}

// Draw returns a picture of a person in the pose of that number; 0 is the pose of the keyframe.
func Draw(person, number, width, height int) image.Image {
	c := newCanvas(width, height)
	l := looks[person%Faces]
	p := poses[number]
	l.drawRoom(c)
	head := float64(p.sway) * swayStep
	l.drawHead(c, head, p)
	return c
}

func (l look) drawRoom(c *canvas) {
	c.paint(everywhere(), l.wall)
	light := color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0x50}
	switch l.room {
	case window:
		for _, x := range []float64{-0.78, -0.57} {
			for _, y := range []float64{0.08, 0.34} {
				c.paint(box(x, y, x+0.19, y+0.24, 0.01), light)
			}
		}
	case shelf:
		for row, y := range []float64{0.3, 0.56} {
			c.paint(box(0.42, y, 0.86, y+0.02, 0.005), l.decor)
			for i, tall := range []float64{0.16, 0.19, 0.14, 0.18, 0.15, 0.19} {
				book := l.decor
				book.A = uint8(0x60 + 0x18*((i+2*row)%4)) //nolint:gosec // below 256
				x := 0.46 + float64(i)*0.055
				c.paint(box(x, y-tall, x+0.042, y, 0.004), book)
			}
		}
	case plant:
		for i := range 5 {
			c.paint(leaf(-0.64+0.05*float64(i-2), 0.5, 0.035, 0.21, 0.3*float64(i-2)), l.decor)
		}
		c.paint(box(-0.71, 0.66, -0.57, 0.84, 0.02), rgb(0xa0694a))
	case lamp:
		c.paint(ellipse(0.62, 0.3, 0.26, 0.26), light)
		c.paint(box(0.61, 0.3, 0.63, 1, 0), l.decor)
		c.paint(box(0.53, 0.22, 0.71, 0.38, 0.06), rgb(0xf3e3b0))
	}
}

// The middle and the radii of every head.
const (
	headY = 0.42
	headX = 0.165
	headR = 0.205
)

func (l look) drawHead(c *canvas, x float64, p pose) {
	if l.style == long {
		c.paint(box(x-0.225, 0.16, x+0.225, 0.84, 0.22), l.hair)
	}
	if l.style == bun {
		c.paint(ellipse(x, 0.15, 0.095, 0.085), l.hair)
	}
	if l.style == curls {
		for _, at := range [][3]float64{{-0.16, 0.3, 0.085}, {-0.19, 0.42, 0.07}, {0.16, 0.3, 0.085}, {0.19, 0.42, 0.07}, {-0.08, 0.22, 0.09}, {0.08, 0.22, 0.09}, {0, 0.2, 0.09}} {
			c.paint(ellipse(x+at[0], at[1], at[2], at[2]), l.hair)
		}
	}
	body := x * 0.4
	c.paint(box(body-0.41, 0.72, body+0.41, 1.5, 0.22), l.shirt)
	neck := box(x-0.075, 0.5, x+0.075, 0.76, 0.07)
	c.paint(neck, l.skin)
	c.paint(ellipse(x, 0.73, 0.1, 0.055), l.skin)
	c.paint(ellipse(x, 0.6, 0.12, 0.08).with(neck), shade(0x26))
	for _, side := range []float64{-1, 1} {
		c.paint(ellipse(x+side*headX, headY+0.02, 0.03, 0.045), l.skin)
	}
	c.paint(ellipse(x, headY, headX, headR), l.skin)
	l.drawBeard(c, x)
	l.drawHair(c, x)
	l.drawFace(c, x, p)
}

func (l look) drawBeard(c *canvas, x float64) {
	if l.beard {
		c.paint(ellipse(x, headY+0.02, headX+0.005, headR).with(box(-2, headY+0.06, 2, 2, 0)).without(ellipse(x, headY+0.03, 0.115, 0.1)), l.hair)
	}
}

func (l look) drawHair(c *canvas, x float64) {
	top := ellipse(x, headY-0.03, headX+0.015, headR+0.015)
	switch l.style {
	case short:
		c.paint(top.with(box(-2, -1, 2, headY, 0)).without(ellipse(x, headY+0.04, headX-0.015, headR-0.02)), l.hair)
	case parted:
		c.paint(top.with(box(-2, -1, 2, headY, 0)).without(leaf(x+0.03, headY+0.045, headX-0.012, headR-0.03, -0.3)), l.hair)
	case long:
		c.paint(top.without(leaf(x-0.085, headY+0.13, headX-0.03, headR+0.06, 0.5)).without(leaf(x+0.085, headY+0.13, headX-0.03, headR+0.06, -0.5)).without(ellipse(x, headY+0.14, headX-0.02, headR-0.02)), l.hair)
	case bun:
		c.paint(top.with(box(-2, -1, 2, headY-0.02, 0)).without(ellipse(x, headY+0.06, headX-0.005, headR-0.01)), l.hair)
	case curls:
		c.paint(top.with(box(-2, -1, 2, headY-0.02, 0)).without(ellipse(x, headY+0.06, headX-0.02, headR-0.02)), l.hair)
	}
}

func (l look) drawFace(c *canvas, x float64, p pose) {
	dark := rgb(0x231a16)
	for _, side := range []float64{-1, 1} {
		eye := x + side*0.065
		if p.blink {
			c.paint(curve(eye, headY+0.005, 0.024, 0.008, 0.009), dark)
		} else {
			c.paint(ellipse(eye, headY+0.005, 0.025, 0.0205), rgb(0xfdfbf7))
			c.paint(ellipse(eye, headY+0.005, 0.0165, 0.0195), dark)
			c.paint(ellipse(eye+0.005, headY-0.002, 0.005, 0.005), rgb(0xffffff))
		}
		c.paint(curve(eye, headY-0.036, 0.034, -0.01, 0.011), l.hair)
		if l.glasses {
			c.paint(ellipse(eye, headY+0.008, 0.052, 0.048).without(ellipse(eye, headY+0.008, 0.044, 0.04)), rgb(0x2b2522))
		}
	}
	if l.glasses {
		c.paint(curve(x, headY+0.002, 0.016, -0.004, 0.008), rgb(0x2b2522))
	}
	c.paint(curve(x, headY+0.062, 0.018, 0.011, 0.009), shade(0x48))
	l.drawMouth(c, x, p.mouth)
}

func (l look) drawMouth(c *canvas, x float64, open int) {
	const y = headY + 0.108
	if open == 0 {
		c.paint(curve(x, y, 0.052, 0.02, 0.013), rgb(0x8c3f38))
		return
	}
	wide := [mouths]float64{0, 0.04, 0.046, 0.036}[open]
	high := [mouths]float64{0, 0.016, 0.03, 0.04}[open]
	mouth := ellipse(x, y+0.012, wide, high)
	c.paint(mouth, rgb(0x5a1f20))
	c.paint(mouth.with(box(-2, 0, 2, y+0.012-high*0.45, 0)), rgb(0xf8f4ee))
	c.paint(mouth.with(ellipse(x, y+0.012+high, wide*0.7, high*0.6)), rgb(0xc8605c))
}
