package node

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

// TestWhenAMediaNodeIsReady asks by HTTP, as health checks do.
func TestWhenAMediaNodeIsReady(t *testing.T) {
	away := errors.New("connection refused")
	for name, c := range map[string]struct {
		settled, draining bool
		store             error
		want              string
	}{
		"it has met nobody":        {want: "cluster key"},
		"it has met somebody":      {settled: true},
		"it drains":                {settled: true, draining: true, want: "drains"},
		"its store does not speak": {settled: true, store: away, want: "store"},
	} {
		r := sfuReadiness{
			view: func() *cluster.View { return &cluster.View{Settled: c.settled} }, draining: func() bool { return c.draining },
			askStore: func(ctx context.Context) error {
				if _, limited := ctx.Deadline(); !limited {
					t.Error("the store is asked without a limit")
				}
				return c.store
			},
		}
		answer := httptest.NewRecorder()
		readiness.Handler(r.check).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, readiness.Path, nil))
		said := answer.Body.String()
		if (answer.Code == http.StatusOK) != (c.want == "") || !strings.Contains(said, c.want) || c.want != "" && answer.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d %q, want %q", name, answer.Code, said, c.want)
		}
	}
}
