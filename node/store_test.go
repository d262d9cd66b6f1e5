package node

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

func TestBoundsOfEventsAreChecked(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for want, flags := range map[string]storeFlag{
		"--events-max 0":  {EventsKeep: time.Hour},
		"--events-keep 1": {EventsMax: 10, EventsKeep: time.Second},
		"--store":         {Store: "nonsense", EventsMax: 10, EventsKeep: time.Hour},
		"":                {Store: "redis://127.0.0.1:6379", EventsMax: 10, EventsKeep: time.Hour},
	} {
		store, err := flags.open("holdfast", metrics.New("sfu", "sfu-1", panics.New(), log), panics.New(), log)
		if store != nil {
			_ = store.Close()
		}
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
