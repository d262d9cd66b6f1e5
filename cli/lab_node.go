//go:build node

package cli

import (
	"context"
	"errors"

	"github.com/alecthomas/kong"
)

// labCommands is empty in the binary of nodes.
type labCommands struct{}

var errNoLab = errors.New("this binary was built for nodes and knows no development cluster")

func labVars() kong.Vars { return nil }

func findDev(context.Context, string) (developmentCluster, error) { return nil, errNoLab }

func devAdvice() string { return "" }

func noDev(error) string { return "" }

func severalDev(error) bool { return false }

func spokenFor(error) (code int, ok bool) { return 0, false }
