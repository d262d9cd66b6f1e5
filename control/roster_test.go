package control

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
)

func TestExpectedPeopleFitAnAttach(t *testing.T) {
	var roster []*Peer
	for i := range 5000 {
		roster = append(roster, &Peer{Id: fmt.Sprint("p-", i), Identity: fmt.Sprint("user-", i), Name: strings.Repeat("x", 40)})
	}
	if all := Expected(roster); len(all) != len(roster) {
		t.Errorf("of %d people with short names %d are named", len(roster), len(all))
	}
	for _, p := range roster {
		p.Name = strings.Repeat("x", 1000)
	}
	some := Expected(roster)
	if size := proto.Size(&Attach{Expected: some}); len(some) == 0 || len(some) == len(roster) || size > expectedBytes {
		t.Errorf("%d people are named in %d bytes", len(some), size)
	}
}
