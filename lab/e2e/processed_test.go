package e2e

import (
	"fmt"
	"testing"
)

// sendsProcessed has an example's page send its camera's pictures in red, made frame by frame and by a canvas, as web/examples/processed does it.
func sendsProcessed(t *testing.T, sender, receiver *page) {
	t.Helper()
	for _, made := range []struct{ how, before, colour string }{
		{"by a canvas", "delete globalThis.MediaStreamTrackGenerator", "blue"},
		{"frame by frame", "globalThis.MediaStreamTrackGenerator = generator", "red"},
	} {
		sender.mustEval(t, fmt.Sprintf(`(async () => {
		  globalThis.generator ??= globalThis.MediaStreamTrackGenerator;
		  %s;
		  const { processed } = await import('/processed/processed.js');
		  const [camera] = (await navigator.mediaDevices.getUserMedia({ video: true })).getVideoTracks();
		  await call.replaceTrack('camera', processed(camera, (context, picture, width, height) => {
		    context.drawImage(picture, 0, 0, width, height);
		    context.fillStyle = %q;
		    context.fillRect(0, 0, width, height);
		  }));
		  return true;
		})()`, made.before, made.colour), nil)
		receiver.sees(t, "pictures made "+made.how, shows(made.colour))
	}
}

// shows is a condition on the colour of the first video of a page.
func shows(colour string) string {
	return fmt.Sprintf(`(() => {
	  const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
	  context.drawImage(document.querySelector('video'), 0, 0, 1, 1);
	  const [red, green, blue] = context.getImageData(0, 0, 1, 1).data;
	  return green < 90 && ({ red: red - blue, blue: blue - red })[%q] > 120;
	})()`, colour)
}
