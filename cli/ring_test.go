package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestRingVerb(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ring.svg")
	for _, c := range []struct{ args, out, fault string }{
		{args: "--nodes 3 --rooms 1000 --add 1", out: "[ring] node added=sfu-4 remapped=223/1000 (22.3%, ~1/4 expected)"},
		{args: "--json --prefix node", out: `"node": "node-3"`},
		{args: "--format svg --out " + file},
		{args: "--nodes 0 --rooms 2000000", fault: "a ring needs at least 1 node, not 0\n  - the number of rooms must be from 1 to 1000000, not 2000000"},
		{args: "--nodes 1001", fault: "at most 1000 nodes"},
	} {
		var out bytes.Buffer
		var verb ringCommand
		parser, err := kong.New(&verb)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse(strings.Fields(c.args)); err != nil {
			t.Fatalf("%s: %v", c.args, err)
		}
		switch err := verb.Run(streams{out: &out}); {
		case c.fault == "" && err != nil:
			t.Errorf("%s: %v", c.args, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s: %v, want %q", c.args, err, c.fault)
		case !strings.Contains(out.String(), c.out):
			t.Errorf("%s: %q is not in:\n%s", c.args, c.out, out.String())
		}
	}
	if picture, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(picture, []byte("<svg ")) {
		t.Errorf("--out: %v, %.20q", err, picture)
	}
}
