package cli

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/tty"
	"github.com/holdfast-rtc/holdfast/node"
)

type logFlags struct {
	LogFormat string `default:"auto" enum:"auto,text,json" help:"text, json, or auto: text on a terminal, else json."`
	LogLevel  string `default:"info" enum:"debug,info,warn,error" help:"The least level that is logged."`
}

func (f logFlags) logger(w io.Writer, name string) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // checked by the parser
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if f.LogFormat == "text" || (f.LogFormat == "auto" && isTerminal(w)) {
		handler = slog.NewTextHandler(w, options)
	}
	return slog.New(handler).With("process", name)
}

func isTerminal(w io.Writer) bool { return tty.Is(w) }

// lifeline ties a supervised process to its supervisor. announce tells the supervisor our addresses.
func lifeline(s streams) (announce func(addresses map[string]string) error) {
	if !child.Supervised() {
		return func(map[string]string) error { return nil }
	}
	child.EndWithParent(s.in, func() { os.Exit(exitFailed) })
	return func(addresses map[string]string) error { return child.Announce(s.out, addresses) }
}

// untilHangUp ends ctx when the terminal is closed, but under nohup.
func untilHangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// process is what a node is given by the command line.
func (f logFlags) process(s streams, name string) node.Process {
	return node.Process{Log: f.logger(s.err, name), Terminate: s.terminate, Announce: lifeline(s), Own: s.own}
}
