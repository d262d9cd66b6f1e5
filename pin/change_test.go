package pin

import (
	"strings"
	"testing"
	"time"
)

func TestAChangeIsReadAsItWasWritten(t *testing.T) {
	was := Change{At: time.UnixMilli(1769000000123).UTC(), Epoch: 1769000000001, From: "sfu-1", To: "sfu-2", Why: "its process is gone: 3 nodes | no answer"}
	if got, err := ParseChange("1769000000123|" + was.Encode()); got != was || err != nil {
		t.Errorf("read %+v, %v", got, err)
	}
	long := Change{Why: strings.Repeat("é", maxWhyBytes)}
	if got, err := ParseChange("0|" + long.Encode()); err != nil || len(got.Why) > maxWhyBytes {
		t.Errorf("%d bytes of a long reason, %v", len(got.Why), err)
	}
	for _, damaged := range []string{"", "1|2|a|b", "x|2|a|b|c", "1|-2|a|b|c", "1|2|a|b|" + strings.Repeat("c", maxWhyBytes+1)} {
		if got, err := ParseChange(damaged); err == nil {
			t.Errorf("%q was read as %+v", damaged, got)
		}
	}
}

func FuzzParseChange(f *testing.F) {
	f.Add("1769000000123|1769000000001|sfu-1|sfu-2|its node drains")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChange(text)
		if err != nil || strings.Contains(string(c.From+c.To), "|") {
			return
		}
		prefix, _, _ := strings.Cut(text, "|")
		again, err := ParseChange(prefix + "|" + c.Encode())
		if err != nil || again.Epoch != c.Epoch || again.To != c.To {
			t.Errorf("%q: %+v, %v", text, again, err)
		}
	})
}
