//go:build long

package e2e

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestThePageSaysThatPicturesAreHeldBack lets two people call over a media node that cannot carry both of their pictures: they become
// smaller, the page says why, and nobody's connection is blamed. One switches the camera off: the other's comes back, and the words go.
func TestThePageSaysThatPicturesAreHeldBack(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 1, NodeEnv: map[string][]string{"sfu-1": {"HOLDFAST_EGRESS_BITS=450000"}}})
	people := joinAll(t, c.URL(), "small", url.Values{"width": {"640"}, "height": {"360"}, "fps": {"15"}, "simulcast": {"1"}}, "Ada", "Alan")
	type seen struct{ Banner, Status string }
	look := func(p *participant) (s seen, err error) {
		err = p.eval(`{
			Banner: document.querySelector('#banner').hidden ? '' : document.querySelector('#banner').dataset.outage + ': ' + document.querySelector('#banner').textContent,
			Status: document.querySelector('#status').dataset.quality,
		}`, &s)
		return s, err
	}
	for _, p := range people {
		eventually(t, time.Minute, p.name+" is told that pictures are smaller", func() error {
			s, err := look(p)
			if err == nil && (len(s.Banner) < 9 || s.Banner[:8] != "limited:") {
				err = fmt.Errorf("it sees %+v", s)
			}
			return err
		})
		s, err := look(p)
		t.Logf("%s: %+v, %v", p.name, s, err)
		if s.Status != "good" {
			t.Errorf("the connection of %s is called %q", p.name, s.Status)
		}
	}
	people[0].mustEval(t, `call.setMuted('camera', true).then(() => true)`, nil)
	for _, p := range people {
		eventually(t, time.Minute, p.name+" is told that it is over", func() error {
			s, err := look(p)
			if err == nil && s.Banner != "" {
				err = errors.New(s.Banner)
			}
			return err
		})
	}
	allDecodeAll(t, time.Minute, people[:1])
}
