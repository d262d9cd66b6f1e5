//go:build !node

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-rtc/holdfast/node"
)

// reportFlags are those of a verb that measures and then reports.
type reportFlags struct {
	JSON bool   `name:"json" help:"Print the report as JSON, for programs, and nothing else on the standard output."`
	Out  string `type:"path" placeholder:"FILE" help:"Write the report as JSON into this file, too."`
}

// print shows the report to people, on the standard error if a program reads the standard output.
func (f reportFlags) print(s streams, report any, table func(io.Writer) error) error {
	people := s.out
	var printed, written error
	if f.JSON {
		people, printed = s.err, encodeJSON(s.out, report)
	}
	if f.Out != "" {
		written = writeJSONFile(f.Out, report)
	}
	return errors.Join(printed, written, table(people))
}

func writeJSONFile(path string, value any) error {
	file, err := os.Create(path)
	if err != nil {
		return node.Faults(fmt.Errorf("write the report: %w", err))
	}
	return errors.Join(encodeJSON(file, value), file.Close())
}
