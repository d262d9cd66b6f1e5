package load

import (
	"testing"
	"time"
)

func FuzzStat(f *testing.F) {
	f.Add([]byte("1 (a) b) S 1 1 1 0 -1 4194560 1 1 1 1 150 50 0 0 20 0 1 0 1 1 1"))
	f.Add([]byte("1 (x) S"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, content []byte) {
		used, err := parseStat(content)
		if used < 0 || (err != nil && used != 0) {
			t.Errorf("%q: %s, %v", content, used, err)
		}
	})
}

func TestANameMayLookLikeFields(t *testing.T) {
	used, err := parseStat([]byte("1 (a) S 9 9) S 1 1 1 0 -1 4194560 1 1 1 1 150 50 0 0 20 0 1 0 1 1 1"))
	if err != nil || used != 2*time.Second {
		t.Errorf("%s, %v; want 2s", used, err)
	}
}
