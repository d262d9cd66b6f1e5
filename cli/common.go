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

	"github.com/holdfast-rtc/holdfast/internal/child"
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

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	stat, err := file.Stat()
	return err == nil && stat.Mode()&os.ModeCharDevice != 0
}

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

func checkHostPort(flag, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("--%s %q: give host:port, or :port for every interface", flag, address)
	}
	return nil
}

// advertised returns the wanted host, with the bound port if none is given. An address bound to every interface needs a name.
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

func unspecified(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "" || (ip != nil && ip.IsUnspecified()))
}

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

// ended drops the error of a context that was told to end.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, net.ErrClosed)) {
		return nil
	}
	return err
}
