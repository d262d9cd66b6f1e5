package devcluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
)

// The embedded store's own commands. The first takes milliseconds, negative to step back.
const (
	commandStep  = "HOLDFAST.STEP"
	commandBreak = "HOLDFAST.BREAK"
)

const redisLimit = 5 * time.Second

var errReply = errors.New("the store's reply is not understood")

// StepClock moves the clock of the embedded store, and returns the time that it then tells.
func (c *Client) StepClock(ctx context.Context, by time.Duration) (time.Time, error) {
	store, err := c.storeAddress(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if _, err := askRedis(ctx, store, commandStep, strconv.FormatInt(by.Milliseconds(), 10)); err != nil {
		return time.Time{}, fmt.Errorf("step the store's clock: %w", err)
	}
	return c.StoreTime(ctx)
}

// StoreTime returns what the store's clock tells.
func (c *Client) StoreTime(ctx context.Context) (time.Time, error) {
	store, err := c.storeAddress(ctx)
	if err != nil {
		return time.Time{}, err
	}
	said, err := askRedis(ctx, store, "TIME")
	if err != nil || len(said) != 2 {
		return time.Time{}, fmt.Errorf("ask the store for its time: %w", errors.Join(errReply, err))
	}
	seconds, err := strconv.ParseInt(said[0], 10, 64)
	return time.Unix(seconds, 0), err
}

// BreakStoreConnections closes all connections to the embedded store, and leaves the store as it is.
func (c *Client) BreakStoreConnections(ctx context.Context) error {
	store, err := c.storeAddress(ctx)
	if err == nil {
		_, err = askRedis(ctx, store, commandBreak)
	}
	if err != nil {
		return fmt.Errorf("break the store's connections: %w", err)
	}
	return nil
}

// SentinelClients counts the connections from the hosts of some nodes to a Sentinel, without those of other Sentinels.
func (c *Client) SentinelClients(ctx context.Context, sentinel Node, of []Node) (int, error) {
	said, err := askRedis(ctx, sentinel.Addresses[child.AddressSentinel], "CLIENT", "LIST")
	if err != nil || len(said) != 1 {
		return 0, fmt.Errorf("ask %s for its clients: %w", sentinel.Name, errors.Join(errReply, err))
	}
	var hosts []string
	for _, n := range of {
		host, _, _ := net.SplitHostPort(n.Addresses[child.AddressHTTP]) // a node without one has no host
		hosts = append(hosts, host)
	}
	count := 0
	for line := range strings.Lines(said[0]) {
		_, from, _ := strings.Cut(line, " addr=")
		host, _, _ := strings.Cut(from, ":")
		if slices.Contains(hosts, host) && !strings.Contains(line, " name=sentinel-") && !strings.Contains(line, " cmd=client") {
			count++
		}
	}
	return count, nil
}

func (c *Client) storeAddress(ctx context.Context) (string, error) {
	status, err := c.Status(ctx)
	if err != nil {
		return "", err
	}
	for _, n := range status.Nodes {
		if n.Role == RoleStore {
			return n.Addresses[child.AddressStore], nil
		}
	}
	return "", fmt.Errorf("%w: store", ErrNoSuchNode)
}

// askRedis sends one command on a connection of its own.
func askRedis(ctx context.Context, address string, command ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, redisLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, text.String()); err != nil {
		return nil, err
	}
	return readReply(bufio.NewReader(conn))
}

// replyBytes bounds a string of a reply.
const replyBytes = 1 << 20

// readReply understands what the commands above are answered with: a line, a string, or a list of strings.
func readReply(from *bufio.Reader) ([]string, error) {
	line, err := from.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	switch kind {
	case '+', ':':
		return []string{rest}, nil
	case '-':
		return nil, errors.New(rest)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > replyBytes {
			return nil, errReply
		}
		text := make([]byte, n+len("\r\n"))
		_, err = io.ReadFull(from, text)
		return []string{string(text[:n])}, err
	case '*':
		n, err := strconv.Atoi(rest)
		var all []string
		for ; n > 0 && err == nil; n-- {
			var one []string
			one, err = readReply(from)
			all = append(all, one...)
		}
		return all, err
	default:
		return nil, errReply
	}
}
