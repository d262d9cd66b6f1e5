package e2e

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// drawnCamera replaces the camera by pictures of a canvas, as a virtual background does: its track knows no size of its own.
const drawnCamera = `(() => {
	const canvas = Object.assign(document.createElement('canvas'), { width: 320, height: 180 });
	const generator = new MediaStreamTrackGenerator({ kind: 'video' });
	const writer = generator.writable.getWriter();
	const context = canvas.getContext('2d');
	setInterval(() => {
		context.fillStyle = 'hsl(' + Date.now() / 20 % 360 + ' 80% 50%)';
		context.fillRect(0, 0, canvas.width, canvas.height);
		writer.write(new VideoFrame(canvas, { timestamp: performance.now() * 1000 }));
	}, 100);
	globalThis.drawn = canvas;
	return call.replaceTrack('camera', generator).then(() => true);
})()`

// TestLayersFollowTheCamera: a viewer gets a camera's pictures in their size where the track says no size, and after the size was
// changed in place, larger or smaller.
func TestLayersFollowTheCamera(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1})
	people := joinAll(t, c.URL(), "layers", url.Values{"width": {"640"}, "height": {"360"}, "simulcast": {"1"}}, "Ada", "Bob")
	ada, bob := people[0], people[1]
	sees := func(width float64, when string) {
		t.Helper()
		eventually(t, time.Minute, fmt.Sprintf("Bob sees a picture %g wide %s", width, when), func() error {
			got := 0.0
			for _, slot := range bob.mustStats(t).PerSlot {
				if slot.Peer == ada.id && slot.Source == "camera" {
					got = slot.FrameWidth
				}
			}
			if got != width {
				return fmt.Errorf("it is %g wide; Ada sends %+v", got, ada.mustStats(t).Outbound)
			}
			return nil
		})
	}
	wantOnly(t, bob, ada.id, 640, 360)
	sees(640, "of the camera")
	const constrained = `document.querySelector('.tile.self video').srcObject.getVideoTracks()[0].applyConstraints({ width: { exact: %d }, height: { exact: %d } }).then(() => true)`
	ada.mustEval(t, fmt.Sprintf(constrained, 320, 180), nil)
	sees(320, "after it was made smaller")
	ada.mustEval(t, fmt.Sprintf(constrained, 640, 360), nil)
	sees(640, "after it was made larger")
	ada.mustEval(t, drawnCamera, nil)
	sees(320, "of a track without a size")
	ada.mustEval(t, "(drawn.width = 640, drawn.height = 360)", nil)
	sees(640, "of that track, once its pictures are larger")
}
