//go:build !node

package cli

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// TestAStoreThatIsNotThereIsSaid: a node whose store cannot be reached keeps running, because
// the store may come; it says what is wrong in its log, and a signaling node is not ready and
// says why.
func TestAStoreThatIsNotThereIsSaid(t *testing.T) {
	t.Setenv("HOLDFAST_CLUSTER_KEY", goodKey)
	t.Setenv("HOLDFAST_API_KEYS", goodKeys)
	defer http.DefaultClient.CloseIdleConnections()
	for role, line := range map[string]string{
		"signaling": "signaling --name s --solo --gossip-listen 127.0.0.1:0 --control-listen 127.0.0.1:0 --listen 127.0.0.1:0 --store redis://127.0.0.1:1",
		"sfu":       "sfu --name m --solo --gossip-listen 127.0.0.1:0 --control-listen 127.0.0.1:0 --media-listen 127.0.0.1:0 --store redis://127.0.0.1:1",
	} {
		t.Run(role, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			log, ended := &testkit.Log{}, make(chan int, 1)
			go func() {
				ended <- run(ctx, strings.Fields(line), streams{in: strings.NewReader(""), out: io.Discard, err: log})
			}()
			awaitLog(t, log, ended, "the store does not answer")
			if role == "signaling" {
				at := regexp.MustCompile(`"signaling node is up".*"listen":"([^"]+)"`).FindStringSubmatch(log.String())
				if at == nil {
					t.Fatalf("no address in\n%s", log)
				}
				response, err := http.Get("http://" + at[1] + "/readyz")
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "is --store right") {
					t.Errorf("readyz says %d %s (%v)", response.StatusCode, text, err)
				}
			}
			cancel()
			if code := <-ended; code != exitDone {
				t.Errorf("ended with %d\n%s", code, log)
			}
		})
	}
}

func awaitLog(t *testing.T, log *testkit.Log, ended <-chan int, words string) {
	t.Helper()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(log.String(), words) {
		select {
		case code := <-ended:
			t.Fatalf("ended with %d\n%s", code, log)
		case <-limit.C:
			t.Fatalf("%q is not in the log:\n%s", words, log)
		case <-tick.C:
		}
	}
}
