package sfu

import (
	"strings"
	"testing"
)

func TestValidateListsEveryFault(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Node, cfg.Boot = "one", "1769000000000-00000001"
	if err := cfg.Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	err := Config{MediaAddress: "nowhere", AdvertiseIPs: []string{"x"}}.Validate()
	for _, fault := range []string{"node", "media address", "advertised", "bits", "packets", "grace", "rooms", "peers per room", "slots", "SDP"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("Validate does not name the fault %q: %v", fault, err)
		}
	}
}
