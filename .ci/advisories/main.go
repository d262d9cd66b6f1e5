// Command advisories reads `govulncheck -mode binary -format json` and prints one line for each advisory that
// concerns what the binary links.
//
// It exits 1 when the vulnerable code of a module is linked and a later version of the module mends it. Everything else
// is printed only: an advisory without a mended version, one whose vulnerable code is not linked, and those of Go's
// standard library, because the Go that builds is the machine's.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// message is one of govulncheck's messages; all fields but one are nil.
type message struct {
	OSV     *advisory `json:"osv"`
	Finding *finding  `json:"finding"`
}

type advisory struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
}

// finding is one place where an advisory concerns the binary. The first frame names the vulnerable module, and the
// function where it is linked.
type finding struct {
	OSV          string  `json:"osv"`
	FixedVersion string  `json:"fixed_version"`
	Trace        []frame `json:"trace"`
}

type frame struct {
	Module   string `json:"module"`
	Version  string `json:"version"`
	Function string `json:"function"`
}

const standardLibrary = "stdlib"

func main() {
	urgent, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "advisories:", err)
		os.Exit(2)
	}
	if urgent > 0 {
		fmt.Printf("%d must be mended: upgrade the modules that are named so, with 'go get MODULE@VERSION'\n", urgent)
		os.Exit(1)
	}
}

// report prints the advisories in the order of their ids and returns how many of them must be mended.
func report(from io.Reader, to io.Writer) (urgent int, err error) {
	summaries := make(map[string]string)
	concerns := make(map[string]finding)
	messages := json.NewDecoder(from)
	complete := false
	for {
		var m message
		if err := messages.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, fmt.Errorf("read what govulncheck says: %w", err)
		}
		complete = true
		if m.OSV != nil {
			summaries[m.OSV.ID] = m.OSV.Summary
		}
		if m.Finding == nil || len(m.Finding.Trace) == 0 {
			continue
		}
		if known, found := concerns[m.Finding.OSV]; !found || known.Trace[0].Function == "" {
			concerns[m.Finding.OSV] = *m.Finding
		}
	}
	if !complete {
		return 0, errors.New("govulncheck said nothing")
	}
	for _, id := range slices.Sorted(maps.Keys(concerns)) {
		verdict, mend := concerns[id].judge()
		if mend {
			urgent++
		}
		fmt.Fprintf(to, "%s, %s: %s\n", id, summaries[id], verdict)
	}
	fmt.Fprintf(to, "%d advisories, %d to be mended\n", len(concerns), urgent)
	return urgent, nil
}

// judge says what is to be done, and whether the build may not go on without it.
func (f finding) judge() (verdict string, mend bool) {
	at := f.Trace[0]
	if at.Module == standardLibrary {
		where := "Go " + strings.TrimPrefix(at.Version, "v")
		if f.FixedVersion == "" {
			return where + ", not mended yet", false
		}
		return where + ", build with Go " + strings.TrimPrefix(f.FixedVersion, "v"), false
	}
	where := at.Module + " " + at.Version
	switch {
	case at.Function == "":
		return where + ", the vulnerable code is not linked", false
	case f.FixedVersion == "":
		return where + ", not mended yet", false
	default:
		return where + ", MUST BE MENDED with " + f.FixedVersion, true
	}
}
