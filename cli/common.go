package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// logFlags say how a process logs.
type logFlags struct {
	LogFormat string `default:"auto" enum:"auto,text,json" help:"text, json, or auto: text on a terminal, else json."`
	LogLevel  string `default:"info" enum:"debug,info,warn,error" help:"The least level that is logged."`
}

// logger makes the logger of a node; every line says whose it is.
func (f logFlags) logger(w io.Writer, name string) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(f.LogLevel)) // the parser has checked it
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(w, options)
	if f.LogFormat == "text" || (f.LogFormat == "auto" && isTerminal(w)) {
		handler = slog.NewTextHandler(w, options)
	}
	return slog.New(handler).With("process", name)
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	stat, err := file.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}

// nameFlag names a node.
type nameFlag struct {
	Name string `help:"The node's stable name, the same across restarts; the host's name by default."`
}

func (f nameFlag) name() (string, error) {
	if f.Name != "" {
		return f.Name, nil
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "", errors.New("--name: this host has no name, so give the node one")
	}
	return host, nil
}

// checkHostPort is the fault of an address that is not host:port, or nil.
func checkHostPort(flag, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("--%s %q: give host:port, or :port for every interface", flag, address)
	}
	return nil
}

// advertised is the address that others are told: the wanted host, or host:port,
// with the port that was bound where none is given. An address bound to every
// interface must be told as a name or an address that others can reach.
func advertised(wanted string, bound net.Addr) (string, error) {
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", fmt.Errorf("read the bound address %s: %w", bound, err)
	}
	if wanted == "" {
		return bound.String(), nil
	}
	if _, _, err := net.SplitHostPort(wanted); err == nil {
		return wanted, nil
	}
	return net.JoinHostPort(strings.Trim(wanted, "[]"), port), nil
}

// unspecified reports whether an address listens on every interface.
func unspecified(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "" || (ip != nil && ip.IsUnspecified()))
}

// lifeline ties a supervised process to its supervisor; it does nothing in any
// other. It returns what tells the supervisor our addresses.
func lifeline(s streams) (announce func(addresses map[string]string) error) {
	if !devcluster.Supervised() {
		return func(map[string]string) error { return nil }
	}
	devcluster.EndWithParent(s.in, func() { os.Exit(exitFailed) })
	return func(addresses map[string]string) error { return devcluster.Announce(s.out, addresses) }
}

// untilHangUp ends ctx when the terminal is closed, so that what was started for a person ends in
// order and leaves nothing behind; not under nohup, which asks for the contrary.
func untilHangUp(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// ended drops the error of a context that was told to end: that is how a node stops.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	return err
}
