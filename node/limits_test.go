package node

import (
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
)

// TestTheHelpTellsTheDefaultLimits: what a flag's help says is what the node does.
func TestTheHelpTellsTheDefaultLimits(t *testing.T) {
	defaults := signaling.DefaultConfig("x")
	for field, want := range map[string]limits.Quota{
		"LimitIdentity": defaults.Limits.Quotas.Identity, "LimitKey": defaults.Limits.Quotas.Key, "LimitAddress": defaults.Limits.Quotas.Address,
	} {
		_, told, ok := strings.Cut(tagOf(t, field, "help"), "Default ")
		var got limits.Quota
		if err := got.Set(strings.TrimSuffix(told, ".")); !ok || err != nil || got != want {
			t.Errorf("%s tells of %q, the default is %+v (%v)", field, told, want, err)
		}
	}
}

func tagOf(t *testing.T, field, key string) string {
	t.Helper()
	f, ok := reflect.TypeFor[limitFlags]().FieldByName(field)
	if !ok {
		t.Fatalf("there is no field %s", field)
	}
	return f.Tag.Get(key)
}
