package build

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestWhatIsSaid(t *testing.T) {
	whole := Info{Version: "0.1.0", Commit: "65fd839c9f29dc69", Modified: true, Go: "go1.26.8", Platform: "linux/amd64"}
	if got := whole.Short(); got != "0.1.0+65fd839c-modified" {
		t.Error(got)
	}
	if got := whole.String(); got != "holdfast 0.1.0, commit 65fd839c9f29dc69 with changes, go1.26.8 linux/amd64" {
		t.Error(got)
	}
	bare := Info{Version: "0.1.0", Go: "go1.26.8", Platform: "linux/amd64"}
	if got := bare.Short() + "; " + bare.String(); got != "0.1.0; holdfast 0.1.0, built outside a checkout, go1.26.8 linux/amd64" {
		t.Error(got)
	}
	if Current().Version != Version || !strings.HasPrefix(Current().Go, "go") {
		t.Errorf("%+v", Current())
	}
}

// TestTheChangelogHasTheVersion: the latest dated section is that of Version, or there are unreleased changes after it.
func TestTheChangelogHasTheVersion(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	released := regexp.MustCompile(`(?m)^## ([0-9]+\.[0-9]+\.[0-9]+) - `).FindSubmatch(text)
	if released == nil || string(released[1]) != Version {
		t.Errorf("the latest release of CHANGELOG.md is %q, and the version %s", released, Version)
	}
}
