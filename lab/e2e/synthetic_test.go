package e2e

import (
	"errors"
	"fmt"
	"image/color"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/lab/portrait"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// shownPicture has some of a person's video as the page shows it: the colour of the wall, which differs from person to person, and
// how many colours the middle has.
const shownPicture = `(() => {
	const video = document.querySelector('.tile[data-peer="%s"] video');
	if (!video?.videoWidth) return { wall: [0, 0, 0], colours: 0 };
	const canvas = new OffscreenCanvas(160, 90);
	const context = canvas.getContext('2d');
	context.drawImage(video, 0, 0, 160, 90);
	const { data } = context.getImageData(40, 0, 80, 90);
	const colours = new Set();
	for (let i = 0; i < data.length; i += 4) colours.add((data[i] >> 5) << 6 | (data[i + 1] >> 5) << 3 | data[i + 2] >> 5);
	return { wall: [...context.getImageData(4, 86, 1, 1).data.slice(0, 3)], colours: colours.size };
})()`

// TestSyntheticPeopleAreSeen: Chromium, which comes last, decodes what synthetic people send in each codec and kind, and each tile
// shows the person that was drawn. Then it joins the people of a demonstration, and kills their node.
func TestSyntheticPeopleAreSeen(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 1, People: 4})
	const room = "drawn"
	var peers []*peer.Peer
	for _, codec := range []portrait.Codec{portrait.VP8, portrait.VP9} {
		for _, video := range []peer.Video{peer.VideoLight, peer.VideoSimulcast} {
			stack, err := peer.NewStackOf(video, codec)
			if err != nil {
				t.Fatal(err)
			}
			peers = append(peers, gatherAs(t, c, room, 1, peer.Options{Stack: stack, Face: len(peers)}).peers...)
		}
	}
	ids := make([]wire.PeerID, len(peers))
	for face, p := range peers {
		eventually(t, time.Minute, fmt.Sprintf("person %d joins", face), func() error {
			if ids[face] = p.Totals().Peer; ids[face] == "" {
				return errors.New("not yet")
			}
			return nil
		})
	}
	ada := join(t, c.URL(), room, "Ada", url.Values{})
	ada.knowsItself(t)
	for face := range peers {
		seesFace(t, ada, string(ids[face]), face)
	}
	ada.visit(t, callAddress(c.URL(), devcluster.DemoRoom, "Ada", url.Values{}), "window.call?.peer")
	ada.knowsItself(t)
	demonstration(t, ada)
}

// demonstration wants four drawn people with names, of whom some speak and some do not, before and after their node is killed.
func demonstration(t *testing.T, ada *participant) {
	t.Helper()
	const others = `[...document.querySelectorAll('.tile:not(.self)')]`
	faces := map[string]int{}
	eventually(t, time.Minute, "four people with names", func() error {
		var named [][2]string
		if err := ada.eval(`call.roster.filter(({ peer }) => peer !== call.peer).map(({ peer, name }) => [peer, name])`, &named); err != nil {
			return err
		}
		clear(faces)
		for face := range 4 {
			for _, one := range named {
				if one[1] == portrait.PersonName(face) {
					faces[one[0]] = face
				}
			}
		}
		if len(faces) != 4 || len(named) != 4 {
			return fmt.Errorf("the roster has %v", named)
		}
		return nil
	})
	for _, when := range []string{"before the kill", "after the kill"} {
		for id, face := range faces {
			seesFace(t, ada, id, face)
		}
		ada.sees(t, "somebody who speaks and somebody who does not, "+when, others+`.some((tile) => tile.matches('.speaking')) && `+others+`.some((tile) => !tile.matches('.speaking'))`)
		if when == "before the kill" {
			ada.mustEval(t, `(document.querySelector('#kill').click(), true)`, nil)
			ada.sees(t, "the move", `/^(sfu-\d) died → (?!\1)sfu-\d, \d/.test(document.querySelector('#status-moves li')?.textContent)`)
		}
	}
}

// seesFace waits until the page decodes a person's video and shows that face.
func seesFace(t *testing.T, viewer *participant, id string, face int) {
	t.Helper()
	wall := color.RGBAModel.Convert(portrait.Draw(face, 0, 160, 90).At(4, 86)).(color.RGBA) //nolint:forcetypeassert // the model's own type
	first := viewer.mustStats(t).flowFrom(id).frames
	eventually(t, time.Minute, fmt.Sprintf("%s sees face %d", viewer.name, face), func() error {
		var shown struct {
			Wall    [3]int
			Colours int
		}
		if err := viewer.eval(fmt.Sprintf(shownPicture, id), &shown); err != nil {
			return err
		}
		frames := viewer.mustStats(t).flowFrom(id).frames - first
		for i, want := range []uint8{wall.R, wall.G, wall.B} {
			if d := shown.Wall[i] - int(want); d < -12 || d > 12 {
				return fmt.Errorf("the wall is %v, want %v; %+v after %g frames", shown.Wall, wall, shown, frames)
			}
		}
		if frames < someFrames || shown.Colours < 8 {
			return fmt.Errorf("%+v after %g frames", shown, frames)
		}
		return nil
	})
}
