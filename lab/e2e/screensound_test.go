package e2e

import (
	_ "embed"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

//go:embed testdata/screensound.js
var screenSoundScript string

// heardSound is what testdata/screensound.js tells of one source.
type heardSound struct {
	Left, Right     float64
	Elements, Slots int
}

// tone is that of the test's screen: in the left channel alone, at its own loudness, once.
func (h heardSound) tone() error {
	const loud, slack = 0.707, 0.15 // of a sine
	if h.Slots != 1 || h.Elements != 1 || h.Left < loud-slack || h.Left > loud+slack || h.Right > 0.05 {
		return fmt.Errorf("heard %+v, want %g in the left channel alone, from one slot and one element", h, loud)
	}
	return nil
}

func (h heardSound) silence() error {
	if h.Left > 0.01 || h.Right > 0.01 {
		return fmt.Errorf("heard %+v, want silence", h)
	}
	return nil
}

// TestAScreenIsHeard: what somebody shares with a screen comes in stereo while the microphone is muted, makes nobody a speaker, goes
// along with the room, and is muted by itself.
func TestAScreenIsHeard(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{})
	room := roomOn(t, "sfu-1", "cinema")
	bob := join(t, c.URL(), room, "Bob", url.Values{"host": {"1"}})
	bob.knowsItself(t)
	ada := join(t, c.URL(), room, "Ada", nil)
	ada.knowsItself(t)
	people := []*participant{ada, bob}
	allDecodeAll(t, time.Minute, people)
	for _, p := range people {
		p.mustEval(t, "(() => {"+screenSoundScript+"; return true; })()", nil)
	}
	hears := func(what, source string, is func(heardSound) error) {
		t.Helper()
		eventually(t, time.Minute, "Bob hears "+what, func() error {
			var heard heardSound
			err := bob.eval(fmt.Sprintf("screenSound.listen(%q, %q)", ada.id, source), &heard)
			if err != nil {
				return err
			}
			return is(heard)
		})
	}
	ada.mustEval(t, "(document.querySelector('.controls [data-toggle=microphone]').click(), screenSound.share())", nil)
	bob.sees(t, "Ada muted", tileOf(ada)+".classList.contains('silent')")
	bob.mustEval(t, fmt.Sprintf("(globalThis.spoke = 0, call.addEventListener('speakers', ({ detail }) => spoke += detail.speakers.some(({ peer }) => peer === %q)), true)", ada.id), nil)
	ada.press(t, "s")
	hears("the screen", "screen-audio", heardSound.tone)
	hears("nothing of Ada's microphone", "microphone", heardSound.silence)
	var asked bool
	if ada.mustEval(t, "screenSound.wish.audio.echoCancellation === false && screenSound.wish.audio.restrictOwnAudio && screenSound.wish.systemAudio === 'include'", &asked); !asked {
		t.Error("the page asked for a sound that is changed, or that has the call in it")
	}
	ada.sees(t, "that it is shared with its sound", `document.querySelector('.tile.screen .who').textContent.includes('sound')`)

	before := []callStats{ada.mustStats(t), bob.mustStats(t)}
	if err := c.MoveRoom(t.Context(), room, "sfu-2"); err != nil {
		t.Fatal(err)
	}
	for i, p := range people {
		p.awaitsMove(t, before[i], "live")
	}
	hears("the screen after a live move", "screen-audio", heardSound.tone)
	before = []callStats{ada.mustStats(t), bob.mustStats(t)}
	kill(t, c, heldOnce(t, c, room).Node)
	for i, p := range people {
		p.awaitsMove(t, before[i], "restart")
	}
	hears("the screen after a failover", "screen-audio", heardSound.tone)
	hears("nothing of Ada's microphone still", "microphone", heardSound.silence)
	var spoke int
	if bob.mustEval(t, "spoke", &spoke); spoke > 0 {
		t.Errorf("Ada, who was muted, was told to speak %d times", spoke)
	}

	bob.chooses(t, ada, "Mute screen sound")
	hears("silence", "screen-audio", heardSound.silence)
	ada.sees(t, "who did that", `document.querySelector('#notices').textContent.includes('muted the sound of your screen')`)
	bob.sees(t, "the screen as before", fmt.Sprintf("call.roster.find(({ peer }) => peer === %q).screenShared && document.querySelector('.tile.screen:not(.dark)')", ada.id))
	ada.mustEval(t, `(document.querySelector('.tile.screen .options').click(), [...document.querySelectorAll('[role=menuitem]')].find(({ textContent }) => textContent === 'Unmute shared sound').click(), true)`, nil)
	hears("the screen again", "screen-audio", heardSound.tone)
	ada.press(t, "s")
	bob.sees(t, "no screen", `!document.querySelector('.tile.screen')`)
	hears("silence in the end", "screen-audio", heardSound.silence)
}
