package main

import (
	"strings"
	"testing"
)

// Only linked code of a module that a later version mends stops the build.
func TestWhatStopsTheBuild(t *testing.T) {
	for name, row := range map[string]struct {
		said   string
		urgent int
		want   string
	}{
		"linked, and mended": {
			`{"osv":{"id":"A","summary":"It breaks"}}
			{"finding":{"osv":"A","fixed_version":"v1.2.4","trace":[{"module":"m","version":"v1.2.3"}]}}
			{"finding":{"osv":"A","fixed_version":"v1.2.4","trace":[{"module":"m","version":"v1.2.3","package":"m/p","function":"F"}]}}`,
			1, "A, It breaks: m v1.2.3, MUST BE MENDED with v1.2.4",
		},
		"linked, not mended": {`{"finding":{"osv":"A","trace":[{"module":"m","version":"v1.2.3","function":"F"}]}}`, 0, "not mended yet"},
		"not linked":         {`{"finding":{"osv":"A","fixed_version":"v1.2.4","trace":[{"module":"m","version":"v1.2.3","package":"m/p"}]}}`, 0, "not linked"},
		"of Go itself":       {`{"finding":{"osv":"A","fixed_version":"v1.26.9","trace":[{"module":"stdlib","version":"v1.26.8","function":"F"}]}}`, 0, "Go 1.26.8, build with Go 1.26.9"},
		"nothing":            {`{"config":{}}`, 0, "0 advisories, 0 to be mended"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			urgent, err := report(strings.NewReader(row.said), &out)
			if err != nil || urgent != row.urgent || !strings.Contains(out.String(), row.want) {
				t.Errorf("%d to be mended, want %d; %q, want %q in it; %v", urgent, row.urgent, out.String(), row.want, err)
			}
		})
	}
}

// A scan that ended early is no clean scan.
func TestAScanThatEndedEarlyIsAnError(t *testing.T) {
	for _, said := range []string{"", `{"finding":`} {
		if _, err := report(strings.NewReader(said), &strings.Builder{}); err == nil {
			t.Errorf("%q is taken for a scan", said)
		}
	}
}
