package nodelist

import (
	"encoding/json"
	"testing"
)

func TestWhatAnOperatorHasToKnowFirstWins(t *testing.T) {
	tests := []struct {
		json, condition string
		gone            bool
	}{
		{`{"state": "up"}`, "up", false},
		{`{"state": "up", "draining": true}`, "draining", false},
		{`{"state": "up", "draining": true, "unreachable": true}`, "unreachable", false},
		{`{"state": "up", "draining": true, "unreachable": true, "suspect": true}`, "suspect", false},
		{`{"state": "left", "draining": true}`, "left", true},
		{`{"state": "dead", "suspect": true}`, "dead", true},
	}
	for _, test := range tests {
		var n Node
		if err := json.Unmarshal([]byte(test.json), &n); err != nil {
			t.Fatal(err)
		}
		if n.Condition() != test.condition || n.Gone() != test.gone {
			t.Errorf("%s: %s, gone %t", test.json, n.Condition(), n.Gone())
		}
	}
}

func TestMediaNodesAreNoSignalingNodes(t *testing.T) {
	if n := (Node{Role: "sfu"}); n.Signaling() {
		t.Error("a media node is taken for a signaling node")
	}
	if n := (Node{Role: "signaling"}); !n.Signaling() {
		t.Error("a signaling node is not known as one")
	}
}
