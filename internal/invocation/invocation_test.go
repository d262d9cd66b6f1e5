package invocation

import (
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/child"
)

func TestGoRunIsShownUpToItsPackage(t *testing.T) {
	for line, want := range map[string]string{
		"go|run|.|dev":                           "go run .",
		"/usr/lib/go/bin/go|run|./|dev|--sfu|4":  "go run ./",
		"go|run|-race|-tags|node|.|rooms":        "go run -race -tags node .",
		"go|run|-tags=node|.|rooms":              "go run -tags=node .",
		"go|-C|/src/holdfast|run|.|dev":          "go -C /src/holdfast run .",
		"go|run|main.go|other.go|dev":            "go run main.go other.go",
		"go|run|example.org/holdfast@v0.1.0|dev": "go run example.org/holdfast@v0.1.0",
		"go|run|-ldflags|-s -w; rm -rf /|.|dev":  "go run .",
		"go|run":                                 "go run .",
		"bash":                                   "go run .",
		"":                                       "go run .",
	} {
		if got := goRun(strings.ReplaceAll(line, "|", "\x00") + "\x00"); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestTheNameIsTheOneThatWasTyped(t *testing.T) {
	for arg, want := range map[string]string{
		"holdfast": "holdfast", "./holdfast": "./holdfast", "/tmp/hf": "/tmp/hf",
		"": "holdfast", "/tmp/x/cli.test": "holdfast", "/a b/hf": "holdfast", "\x1b[2J": "holdfast",
	} {
		if got := typed(arg); got != want {
			t.Errorf("%q: %q, want %q", arg, got, want)
		}
	}
	if got := Name(); got != usual {
		t.Errorf("a test is called %q", got)
	}
	t.Setenv(child.SupervisedEnv, "1")
	if got := Name(); got != usual {
		t.Errorf("a supervised process is called %q", got)
	}
}
