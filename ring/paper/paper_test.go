package paper

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden compares text and JSON with testdata; its placements are those of the
// ring's own golden table, which sha1sum computed.
func TestGolden(t *testing.T) {
	three := Plan{Nodes: 3, Rooms: 1000, Prefix: "sfu"}
	grown := Plan{Nodes: 3, Rooms: 1000, Add: 1, Prefix: "sfu"}
	for file, c := range map[string]struct {
		plan  Plan
		write func(Report, io.Writer) error
	}{
		"3-nodes.txt":         {three, Report.WriteText},
		"3-nodes-add-1.txt":   {grown, Report.WriteText},
		"3-nodes-add-1.json":  {grown, Report.WriteJSON},
		"20-nodes-add-20.txt": {Plan{Nodes: 20, Rooms: 5000, Add: 20, Prefix: "node"}, Report.WriteText},
	} {
		report, err := Compute(c.plan)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := c.write(report, &got); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs; go test ./ring/paper -update writes it anew. Now:\n%s", file, got.Bytes())
		}
	}
}

// TestFiguresAgree checks what must hold of any plan: no room is lost, the added
// nodes hold exactly what moved, and the picture is well-formed XML.
func TestFiguresAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := Plan{
			Nodes: rapid.IntRange(1, 16).Draw(t, "nodes"), Rooms: rapid.IntRange(1, 300).Draw(t, "rooms"),
			Add: rapid.IntRange(0, 5).Draw(t, "add"), Prefix: rapid.StringN(0, 20, 64).Draw(t, "prefix"),
		}
		report, err := Compute(plan)
		if err != nil && strings.Contains(err.Error(), "printable") {
			plan.Prefix = "sfu"
			report, err = Compute(plan)
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := func(shares []Share) (n int) {
			for _, s := range shares {
				n += s.Rooms
			}
			return n
		}
		if got := sum(report.Before.Shares); got != plan.Rooms || len(report.Before.Shares) != plan.Nodes {
			t.Fatalf("%d rooms on %d nodes, want %+v", got, len(report.Before.Shares), plan)
		}
		if g := report.Growth; g != nil {
			if got := sum(g.After.Shares); got != plan.Rooms {
				t.Fatalf("%d rooms after growth, want %d", got, plan.Rooms)
			}
			if got := sum(g.After.Shares[plan.Nodes:]); got != g.Remapped {
				t.Fatalf("the new nodes hold %d rooms, %d moved", got, g.Remapped)
			}
		}
		wellFormed(t, report)
	})
}

func wellFormed(t interface{ Fatal(...any) }, report Report) string {
	var out bytes.Buffer
	if err := report.WriteSVG(&out); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(out.Bytes()))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return out.String()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPictureShowsTheFigures(t *testing.T) {
	report, err := Compute(Plan{Nodes: 3, Rooms: 1000, Add: 1, Prefix: "<&>"})
	if err != nil {
		t.Fatal(err)
	}
	text := wellFormed(t, report)
	for _, want := range []string{
		"&lt;&amp;&gt;-1", fmt.Sprintf(">%.1f %%<", 100*report.Growth.RemapShare),
		fmt.Sprintf(">%d of 1,000 rooms moved<", report.Growth.Remapped), "prefers-color-scheme: dark",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
	// The largest plan must stay a picture that a browser opens.
	report, err = Compute(Plan{Nodes: MaxNodes, Rooms: 10_000, Prefix: "sfu"})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(wellFormed(t, report)); n > 1<<20 {
		t.Errorf("a ring of %d nodes is a picture of %d bytes", MaxNodes, n)
	}
}

func TestPlansThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		plan Plan
		want []string
	}{
		{Plan{Nodes: 0, Rooms: 0}, []string{"at least 1 node", "rooms must be from 1"}},
		{Plan{Nodes: 3, Rooms: MaxRooms + 1, Add: -1}, []string{"to 1000000, not 1000001", "only be added"}},
		{Plan{Nodes: 990, Rooms: 1, Add: 11}, []string{"at most 1000 nodes"}},
		{Plan{Nodes: 1, Rooms: 1, Prefix: "a\nb"}, []string{"printable"}},
		{Plan{Nodes: 1, Rooms: 1, Prefix: strings.Repeat("a", 65)}, []string{"at most 64"}},
		{Plan{Nodes: 1 << 62, Rooms: 1, Add: 1 << 62}, []string{"at most 1000 nodes"}},
	} {
		_, err := Compute(c.plan)
		if err == nil {
			t.Errorf("%+v was computed", c.plan)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %q does not say %q", c.plan, err, want)
			}
		}
	}
}
