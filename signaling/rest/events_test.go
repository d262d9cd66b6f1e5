package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
)

// eventLog is a store with so many events, of which every tenth is about the hall.
type eventLog struct {
	count int
	away  bool
}

func (l *eventLog) Events(_ context.Context, after string, limit int) (found []events.Event, last string, err error) {
	if l.away {
		return nil, after, errors.New("away")
	}
	begin := time.UnixMilli(0)
	if after != "" {
		if begin, err = events.TimeOf(after); err != nil {
			return nil, after, err
		}
	}
	last = after
	for i := int(begin.UnixMilli()) + 1; i <= l.count && len(found) < limit; i++ {
		e := events.Event{ID: events.Before(time.UnixMilli(int64(i + 1))), Kind: events.RoomOpened, Room: "cellar"}
		if i%10 == 0 {
			e.Room = "hall"
		}
		found, last = append(found, e), e.ID
	}
	return found, last, nil
}

func TestQuestionsAboutEvents(t *testing.T) {
	now := time.UnixMilli(7_200_000)
	for query, want := range map[string]string{
		"":                           "",
		"since=1h":                   "3599999-0",
		"since=1970-01-01T01:00:00Z": "3599999-0",
		"after=5-1&since=1h":         "5-1",
		"limit=10&room=hall&node=sfu-1&kind=node_up": "",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := questionOf(values, now); err != nil || q.after != want {
			t.Errorf("%q: after %q, %v", query, q.after, err)
		}
	}
	for _, query := range []string{"since=yesterday", "since=-1h", "after=5", "limit=0", "limit=1001", "limit=x", "kind=comet"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := questionOf(values, now); err == nil {
			t.Errorf("%q was taken", query)
		}
	}
}

func TestEventsArePages(t *testing.T) {
	log := &eventLog{count: 2500}
	for _, c := range []struct {
		query       string
		pages, seen int
	}{{"", 3, 2500}, {"room=hall", 1, 250}, {"room=hall&limit=100", 3, 250}, {"room=attic", 1, 0}, {"kind=node_down", 1, 0}} {
		values, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		pages, seen := 0, 0
		for more := true; more; pages++ {
			q, err := questionOf(values, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			answer, err := q.ask(t.Context(), log)
			if err != nil {
				t.Fatal(err)
			}
			seen, more = seen+len(answer.Events), answer.More
			values.Set("after", answer.Next)
		}
		if pages != c.pages || seen != c.seen {
			t.Errorf("%q: %d events on %d pages, want %d on %d", c.query, seen, pages, c.seen, c.pages)
		}
	}
}

// TestTheKindsOfEventsAreDescribed: openapi.json and docs/OPERATIONS.md have each kind, and openapi.json no other.
func TestTheKindsOfEventsAreDescribed(t *testing.T) {
	source, err := os.ReadFile("../../internal/events/events.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, kind := range regexp.MustCompile(`(?m)^\t\w+ +Kind = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		want = append(want, kind[1])
		if !strings.Contains(string(page), "`"+kind[1]+"`") {
			t.Errorf("docs/OPERATIONS.md has no %s", kind[1])
		}
	}
	var document struct {
		Paths map[string]struct {
			Get struct {
				Parameters []struct {
					Name   string
					Schema struct{ Items struct{ Enum []string } }
				}
			}
		}
	}
	if err := json.Unmarshal(OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for _, p := range document.Paths["/api/v1/events"].Get.Parameters {
		if p.Name == "kind" {
			if !slices.Equal(p.Schema.Items.Enum, want) {
				t.Errorf("openapi.json has the kinds %v, want %v", p.Schema.Items.Enum, want)
			}
			return
		}
	}
	t.Error("openapi.json has no parameter kind of GET /events")
}
