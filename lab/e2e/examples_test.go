package e2e

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/web"
)

// TestExamples opens the pages of web/examples from a server of another origin, the one in React with a token of an example's server.
// They see each other, also after their node was killed, and whose component goes leaves the room.
func TestExamples(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 2, Signaling: 1})
	pages := exampleServer(t)
	tokens := exampleTokens(t, c.Access(), pages)
	room, cluster := roomOn(t, "sfu-1", "examples"), strings.TrimSuffix(c.URL(), "/")
	open := func(example, name string, more url.Values) *page {
		q := url.Values{"server": {cluster}, "room": {room}, "name": {name}}
		maps.Copy(q, more)
		return openPage(t, name, pages+"/"+example+"/?"+q.Encode())
	}
	ada := open("vanilla", "Ada", nil)
	grace := open("react", "Grace", url.Values{"tokens": {tokens}})
	everybody := []*page{ada, grace}
	for _, p := range everybody {
		p.picturesMove(t)
	}
	grace.sees(t, "Ada's name", `document.querySelector('figcaption').textContent.startsWith('Ada')`)
	ada.mustEval(t, `(document.querySelector('#mute').click(), true)`, nil)
	grace.sees(t, "that Ada is muted", `document.querySelector('figcaption').textContent === 'Ada (muted)'`)

	sendsProcessed(t, ada, grace)
	kill(t, c, heldOnce(t, c, room).Node)
	ada.sees(t, "the other node", "call.node === 'sfu-2' && call.state === 'live'")
	for _, p := range everybody {
		p.picturesMove(t)
	}
	grace.sees(t, "the same pictures as before", shows("red"))
	ada.sees(t, "one picture, still in its element", `document.querySelectorAll('video').length === 1 && document.querySelector('#state').textContent === 'live'`)

	grace.mustEval(t, `(root.unmount(), true)`, nil)
	ada.sees(t, "that Grace has left", `document.querySelectorAll('#people > *').length === 0 && call.roster.length === 1`)
	ada.mustEval(t, `(document.querySelector('#leave').click(), true)`, nil)
	ada.sees(t, "that the call is over", `document.querySelector('#state').textContent === 'You left the call.'`)
}

// picturesMove waits until ten more frames of a picture were shown.
func (p *page) picturesMove(t *testing.T) {
	t.Helper()
	const frames = `document.querySelector('video')?.getVideoPlaybackQuality().totalVideoFrames ?? 0`
	var before float64
	p.mustEval(t, frames, &before)
	p.sees(t, "a picture that moves", fmt.Sprintf("(%s) > %g", frames, before+10))
}

// exampleServer serves the examples as any static server would. What the page in React takes from node_modules is the library, and a stand-in.
func exampleServer(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(os.DirFS("../../web/examples")))
	for _, path := range []string{"react/index.js", "react-dom/client.js"} {
		mux.HandleFunc("/react/node_modules/"+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte("export * from '/stand-in/react.js';"))
		})
	}
	mux.Handle("/stand-in/", http.StripPrefix("/stand-in/", http.FileServerFS(os.DirFS("../../web/testdata/react"))))
	mux.Handle("/react/node_modules/@holdfast-rtc/", http.StripPrefix("/react/node_modules/@holdfast-rtc/", http.FileServerFS(web.Static())))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// exampleTokens starts the token server in Python with the cluster's key, for pages of an origin.
func exampleTokens(t *testing.T, key devcluster.Access, origin string) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, tool.Find(t, "python3"), "../../web/examples/tokens/server.py", "127.0.0.1:0")
	server.Env = append(os.Environ(), "HOLDFAST_API_KEYS="+key.Key+":"+key.Secret, "ORIGIN="+origin)
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = server.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the token server says no address: %v", err)
	}
	return strings.TrimSpace(line)
}
