//go:build shots

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

// What the README's film shows, and how.
const (
	filmWidth, filmHeight = 960, 600
	filmRate              = 10 // pictures a second
	filmBefore            = 4 * time.Second
	filmAfter             = 6 * time.Second
	filmSelf              = 4 // the face of whose page is filmed
	filmBytes             = 2 << 20
	filmSpoken            = 0.6 // of the pictures have somebody who speaks, or the film looks like a picture
)

// The film shows a failover near the median of docs/MEASUREMENTS.md, in ms: one that took much longer or shorter is not typical.
const (
	typicalFrom, typicalTo = 100, 200
	filmTries              = 16
)

// TestFilm is a command in the form of a test. It films a call with the people of `holdfast demo` whose media node is killed, and
// writes call.webp and, of the moment after, call.png, with ffmpeg:
// go test -tags shots ./lab/e2e -run TestFilm -count 1 -args -shots "$PWD/docs/img"
func TestFilm(t *testing.T) {
	if *shotsDir == "" {
		t.Fatal("say where to put the film: -args -shots DIR")
	}
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{People: 4})
	camera := filepath.Join(t.TempDir(), "camera.y4m")
	if err := os.WriteFile(camera, selfFilm(), 0o644); err != nil {
		t.Fatal(err)
	}
	flags := append(chromiumFlags(t.TempDir()), chromedp.Flag("use-file-for-fake-video-capture", camera))
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), flags...)
	defer cancel()
	tab, cancelTab := chromedp.NewContext(alloc)
	defer cancelTab()
	f := &filming{t: t, tab: tab, page: &page{name: "Katherine", run: func(limit context.Context, script string) (string, error) {
		within, cancel := context.WithCancel(tab)
		defer context.AfterFunc(limit, cancel)()
		defer cancel()
		return chromedp.Run(within, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	}}}
	f.open(c)
	for range filmTries {
		var node string
		f.page.mustEval(t, "call.node", &node)
		gap, spoken, pictures := f.take()
		t.Logf("%s died: %d ms, somebody speaks in %.0f %%", node, gap, 100*spoken)
		if gap >= typicalFrom && gap <= typicalTo && spoken >= filmSpoken {
			f.write(pictures)
			return
		}
		restart(t, c, node)
	}
	t.Errorf("no failover of %d took %d to %d ms while people spoke: the machine is busy", filmTries, typicalFrom, typicalTo)
}

type filming struct {
	t    *testing.T
	tab  context.Context // of the person whose page is filmed
	page *page
}

func (f *filming) open(c *devcluster.Cluster) {
	f.t.Helper()
	err := chromedp.Do(f.tab)
	if err == nil {
		_, err = chromedp.Call(f.tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: filmWidth, Height: filmHeight, DeviceScaleFactor: 1})
	}
	if err == nil {
		// Silent, as the others are: the fake microphone beeps.
		_, err = chromedp.Call(f.tab, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: silentMicrophone})
	}
	if err == nil {
		address := fmt.Sprintf("%s/?room=%s&name=Katherine+Johnson&autojoin=1&width=640&height=360&fps=15&simulcast=0", strings.TrimSuffix(c.URL(), "/"), devcluster.DemoRoom)
		err = chromedp.Do(f.tab, chromedp.Navigate(address))
	}
	if err != nil {
		f.t.Fatalf("open the page: %v", err)
	}
	f.page.sees(f.t, "everybody", inCall(5))
	f.page.mustEval(f.t, captions, nil)
}

const silentMicrophone = `(() => {
  const open = MediaDevices.prototype.getUserMedia;
  MediaDevices.prototype.getUserMedia = async function (wanted) {
    const stream = await open.call(this, wanted);
    for (const track of stream.getAudioTracks()) {
      stream.removeTrack(track);
      stream.addTrack(new AudioContext().createMediaStreamDestination().stream.getAudioTracks()[0]);
    }
    return stream;
  };
})()`

// captions are laid over the page's last line, and the button is marked, so that a film without sound can be followed.
const captions = `(() => {
  const caption = Object.assign(document.createElement('div'), { id: 'caption' });
  caption.style.cssText = 'position:fixed;bottom:5px;left:50%;translate:-50%;padding:3px 14px;border-radius:12px;background:#10302c;color:#fff;font:600 15px sans-serif;z-index:99';
  document.body.append(caption);
  const button = document.querySelector('#kill');
  globalThis.tell = (text, marked) => {
    caption.textContent = text;
    button.style.outline = marked ? '4px solid #e0a800' : '';
  };
  call.addEventListener('migration', ({ detail }) => {
    if (detail.phase !== 'done') return;
    globalThis.gap = detail.gapMs;
    setTimeout(() => tell('The call goes on at ' + call.node + '.', false));
  });
  return true;
})()`

// take films a failover. It returns the longest gap in ms, as the page tells it, and in what share of the pictures somebody speaks.
func (f *filming) take() (gap int, spoken float64, pictures [][]byte) {
	f.t.Helper()
	speaks, looks := 0, 0
	f.page.mustEval(f.t, `(document.querySelector('#status-moves').replaceChildren(), globalThis.gap = 0, tell('This call lives at ' + call.node + '.', false), true)`, nil)
	began := time.Now()
	acts := []struct {
		at     time.Duration
		script string
	}{
		{filmBefore - 2*time.Second, `tell('Now ' + call.node + ' is killed …', true)`},
		{filmBefore, `document.querySelector('#kill').click()`},
	}
	tick := time.NewTicker(time.Second / filmRate)
	defer tick.Stop()
	for at := time.Duration(0); at < filmBefore+filmAfter; at = time.Since(began) {
		if len(acts) > 0 && at > acts[0].at {
			f.page.mustEval(f.t, "("+acts[0].script+", true)", nil)
			acts = acts[1:]
		}
		var speaking bool
		f.page.mustEval(f.t, `document.querySelector('.tile.speaking') !== null`, &speaking)
		if looks++; speaking {
			speaks++
		}
		picture, err := chromedp.Run(f.tab, chromedp.CaptureScreenshot())
		if err != nil {
			f.t.Fatalf("take a picture: %v", err)
		}
		// A busy machine misses ticks; their pictures are repeated, so that the film runs as the time did.
		for len(pictures) < int(time.Since(began)*filmRate/time.Second) {
			pictures = append(pictures, picture)
		}
		<-tick.C
	}
	f.page.mustEval(f.t, "Math.round(gap)", &gap)
	f.page.sees(f.t, "everybody again", inCall(5))
	return gap, float64(speaks) / float64(looks), pictures
}

func (f *filming) write(pictures [][]byte) {
	f.t.Helper()
	film := filepath.Join(*shotsDir, "call.webp")
	encode := exec.Command("ffmpeg", "-hide_banner", "-loglevel", "error", "-y", "-f", "image2pipe", "-c:v", "png", "-framerate", fmt.Sprint(filmRate), "-i", "-",
		"-c:v", "libwebp_anim", "-quality", "70", "-compression_level", "6", "-loop", "0", film)
	encode.Stdin = bytes.NewReader(bytes.Join(pictures, nil))
	if said, err := encode.CombinedOutput(); err != nil {
		f.t.Fatalf("ffmpeg: %v: %s", err, said)
	}
	made, err := os.Stat(film)
	if err == nil && made.Size() > filmBytes {
		f.t.Errorf("the film has %d bytes, at most %d", made.Size(), filmBytes)
	}
	if err == nil {
		f.page.mustEval(f.t, `(document.querySelector('#caption').remove(), true)`, nil)
		var picture []byte
		if picture, err = chromedp.Run(f.tab, chromedp.CaptureScreenshot()); err == nil {
			err = os.WriteFile(filepath.Join(*shotsDir, "call.png"), picture, 0o644)
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// selfFilm is a drawn person as Y4M, which Chromium takes for a camera.
func selfFilm() []byte {
	const width, height, rate, seconds = 640, 360, 15, 10
	var film bytes.Buffer
	fmt.Fprintf(&film, "YUV4MPEG2 W%d H%d F%d:1 Ip A1:1 C420jpeg\n", width, height, rate)
	frames := map[int][]byte{}
	for i := range rate * seconds {
		number := portrait.At(filmSelf, time.Duration(i)*time.Second/rate, false)
		if frames[number] == nil {
			frames[number] = planes(portrait.Draw(filmSelf, number, width, height))
		}
		film.WriteString("FRAME\n")
		film.Write(frames[number])
	}
	return film.Bytes()
}

// planes returns a picture's three planes, with a quarter of the colour.
func planes(picture image.Image) []byte {
	size := picture.Bounds().Size()
	luma, blue, red := make([]byte, 0, size.X*size.Y*3/2), []byte(nil), []byte(nil)
	for y := range size.Y {
		for x := range size.X {
			r, g, b, _ := picture.At(x, y).RGBA()
			yy, cb, cr := color.RGBToYCbCr(uint8(r>>8), uint8(g>>8), uint8(b>>8))
			// Chromium takes the numbers for those of television: from 16 to 235, and colours from 16 to 240.
			luma = append(luma, byte(16+int(yy)*219/255))
			if x%2 == 0 && y%2 == 0 {
				blue, red = append(blue, byte(16+int(cb)*224/255)), append(red, byte(16+int(cr)*224/255))
			}
		}
	}
	return append(append(luma, blue...), red...)
}
