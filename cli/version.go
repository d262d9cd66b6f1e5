package cli

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/internal/build"
)

type versionCommand struct {
	JSON bool `name:"json" help:"Print it as JSON, for programs."`
}

// Run says which build this binary is.
func (c *versionCommand) Run(s streams) error {
	if !c.JSON {
		_, err := fmt.Fprintln(s.out, build.Current())
		return err
	}
	return encodeJSON(s.out, build.Current())
}
