package limits

import (
	"strings"
	"testing"
)

func TestQuotaText(t *testing.T) {
	for text, want := range map[string]Quota{
		"":                                  {Joins: Rate{1, 2}, Sockets: 3},
		"off":                               {},
		"joins=5.5:50, sockets=off":         {Joins: Rate{5.5, 50}},
		"rooms=0.1:2,offers=9:9,joins=off,": {Rooms: Rate{0.1, 2}, Offers: Rate{9, 9}, Sockets: 3},
		"sockets=12":                        {Joins: Rate{1, 2}, Sockets: 12},
	} {
		got := Quota{Joins: Rate{1, 2}, Sockets: 3}
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%q makes %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"joins", "joins=", "joins=5", "joins=0:1", "joins=1:0", "joins=-1:1", "joins=NaN:1", "joins=+Inf:1", "sockets=0", "sockets=1:1", "tea=1:1"} {
		q := Quota{}
		if err := q.Set(text); err == nil || !strings.Contains(err.Error(), "write joins=10:100") {
			t.Errorf("%q: %+v, %v", text, q, err)
		}
	}
}
