package h264

import (
	"fmt"
	"testing"
)

// TestProfiles has the ids that browsers, phones and their hardware offer.
func TestProfiles(t *testing.T) {
	for id, want := range map[string]Profile{
		"42e01f": ConstrainedBaseline, "42E034": ConstrainedBaseline, "42C02A": ConstrainedBaseline, "4de01f": ConstrainedBaseline, "58c01f": ConstrainedBaseline,
		"42001f": Baseline, "42a01f": Baseline, "58a01f": Baseline,
		"4d001f": Main, "4d4028": Main,
		"64001f": High, "640033": High, "640c1f": ConstrainedHigh, "640C34": ConstrainedHigh,
		"42e11f": Unknown, "64081f": Unknown, "f4001f": Unknown, "": Unknown, "42e01": Unknown, "42e01f0": Unknown, "42e0xx": Unknown, "+2e01f": Unknown,
	} {
		if got := ProfileOf(id); got != want {
			t.Errorf("%q is %d, want %d", id, got, want)
		}
	}
}

func TestFormats(t *testing.T) {
	format := func(mode, id string) string {
		return Format("level-asymmetry-allowed=1;packetization-mode=" + mode + ";profile-level-id=" + id)
	}
	if format("1", "42e01f") != format("1", "42E034") || format("1", "42e01f") != format("1", "42001f") || Format("") != format("0", "42000a") {
		t.Error("what can be decoded has two formats")
	}
	seen := map[string]string{}
	for _, id := range []string{"42e01f", "4d001f", "640c1f", "64001f"} {
		for _, mode := range []string{"0", "1"} {
			if old := seen[format(mode, id)]; old != "" {
				t.Errorf("%s and %s have one format", old, id)
			}
			seen[format(mode, id)] = id
		}
	}
}

// FuzzProfile: any six digits have one profile at most, and the level does not matter.
func FuzzProfile(f *testing.F) {
	f.Add("42e01f")
	f.Add("640c34")
	f.Fuzz(func(t *testing.T, id string) {
		profile := ProfileOf(id)
		if profile == Unknown {
			return
		}
		matches := 0
		for _, p := range patterns() {
			var idc, set byte
			if _, err := fmt.Sscanf(id[:4], "%02x%02x", &idc, &set); err != nil {
				t.Fatal(err)
			}
			if idc == p.idc && set&p.mask == p.value {
				matches++
			}
		}
		if matches != 1 || ProfileOf(id[:4]+"00") != profile {
			t.Fatalf("%q matches %d patterns", id, matches)
		}
		_ = Format("profile-level-id=" + id)
	})
}
