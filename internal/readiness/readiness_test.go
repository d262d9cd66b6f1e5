package readiness

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAsk(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	asker := New(time.Minute)
	if err := asker.Ask(t.Context(), address, Path); err != nil {
		t.Errorf("who is ready: %v", err)
	}
	if err := asker.Ask(t.Context(), address, "/other"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("who is not ready: %v, want its status", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := asker.Ask(ended, address, Path); err == nil {
		t.Error("it asked after its context had ended")
	}
	if err := asker.Ask(t.Context(), "\x00", Path); err == nil {
		t.Error("an address that is none was ready")
	}
}

// A frozen process accepts, by its kernel, and never answers.
func TestWhoNeverAnswersIsNotReady(t *testing.T) {
	frozen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	if err := New(50*time.Millisecond).Ask(t.Context(), frozen.Addr().String(), Path); err == nil {
		t.Error("it was ready")
	}
}
