package devcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/invocation"
)

// Nodes is a cluster without a supervisor.
type Nodes interface {
	Status(ctx context.Context) (Status, error)
	Kill(ctx context.Context, name string, signal syscall.Signal) error
	StartNode(ctx context.Context, name string, env ...string) (Node, error)
	// Replace ends a node by SIGTERM and starts it again.
	Replace(ctx context.Context, name string) error
	// LogDir returns the directory of NAME.log.
	LogDir(ctx context.Context) (string, error)
}

// Client speaks to a supervisor, or to other Nodes.
type Client struct {
	state stateFile
	http  *http.Client
	nodes Nodes // nil: a supervisor's
}

// ClientOf speaks to nodes without a supervisor.
func ClientOf(nodes Nodes, access Access) *Client {
	c := newClient(stateFile{Access: access})
	c.nodes = nodes
	return c
}

// Supervised reports whether nodes can be started with other variables.
func (c *Client) Supervised() bool { return c == nil || c.nodes == nil }

func newClient(state stateFile) *Client {
	return &Client{state: state, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// Find returns the cluster of this state file, or the user's only one.
func Find(ctx context.Context, path string) (*Client, error) {
	if path != "" {
		return open(path)
	}
	dir, err := stateDir()
	if err != nil {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var found []*Client
	var live []string
	for _, path := range paths {
		c, err := open(path)
		if err != nil {
			continue
		}
		if _, err := c.Status(ctx); err != nil {
			if ctx.Err() == nil {
				os.Remove(path)
			}
			continue
		}
		found, live = append(found, c), append(live, path)
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w; start one with: %s dev", ErrNoCluster, invocation.Name())
	case 1:
		return found[0], nil
	default:
		return nil, fmt.Errorf("%w; choose one with --state: %s", ErrSeveral, strings.Join(live, ", "))
	}
}

func open(path string) (*Client, error) {
	state, err := readState(path)
	if err != nil {
		return nil, err
	}
	return newClient(state), nil
}

// Status describes the cluster.
func (c *Client) Status(ctx context.Context) (Status, error) {
	if c.nodes != nil {
		return c.nodes.Status(ctx)
	}
	var status Status
	err := c.call(ctx, http.MethodGet, "/status", nil, &status)
	return status, err
}

// Access returns this run's API key.
func (c *Client) Access() Access { return c.state.Access }

// Token allows to join, publish and subscribe.
func (c *Client) Token(room, name string) (string, error) { return c.Access().JoinToken(room, name) }

// MessengerToken also allows to message everybody. people is the room's limit; 0: none.
func (c *Client) MessengerToken(room, name string, people int) (string, error) {
	return c.Access().messengerToken(room, name, people)
}

// Kill sends a signal to a node. After SIGKILL it waits for the end.
func (c *Client) Kill(ctx context.Context, name string, sig syscall.Signal) error {
	if c.nodes != nil {
		return c.nodes.Kill(ctx, name, sig)
	}
	return c.call(ctx, http.MethodPost, "/nodes/"+name+"/kill", child.KillRequest{Signal: sig}, nil)
}

// StartNode starts a dead node and waits until the cluster sees it. env (KEY=VALUE) is for this run.
func (c *Client) StartNode(ctx context.Context, name string, env ...string) (Node, error) {
	if c.nodes != nil {
		return c.nodes.StartNode(ctx, name, env...)
	}
	var node Node
	err := c.call(ctx, http.MethodPost, "/nodes/"+name+"/start", startRequest{Env: env}, &node)
	return node, err
}

// Replace ends a node by SIGTERM and starts it again.
func (c *Client) Replace(ctx context.Context, name string) error {
	if c.nodes != nil {
		return c.nodes.Replace(ctx, name)
	}
	if err := c.Kill(ctx, name, syscall.SIGTERM); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, replaceLimit)
	defer cancel()
	for backoff.Sleep(ctx, readyPoll) {
		status, err := c.Status(ctx)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(status.Nodes, func(n Node) bool { return n.Name == name && n.State == StateDead }) {
			_, err := c.StartNode(ctx, name)
			return err
		}
	}
	return fmt.Errorf("%s has not ended within %v of SIGTERM", name, replaceLimit)
}

// replaceLimit covers a drain and the restarts after it.
const replaceLimit = 90 * time.Second

// LogDir returns the directory of NAME.log.
func (c *Client) LogDir(ctx context.Context) (string, error) {
	if c.nodes != nil {
		return c.nodes.LogDir(ctx)
	}
	status, err := c.Status(ctx)
	return status.LogDir, err
}

// AddSFU starts one more media node and waits until the cluster sees it.
func (c *Client) AddSFU(ctx context.Context, env ...string) (Node, error) {
	var node Node
	err := c.call(ctx, http.MethodPost, "/sfu", startRequest{Env: env}, &node)
	return node, err
}

// Stop ends the cluster.
func (c *Client) Stop(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/stop", nil, nil)
}

// Logs returns the end of a node's log.
func (c *Client) Logs(ctx context.Context, name string) (string, error) {
	dir, err := c.LogDir(ctx)
	return logTail(filepath.Join(dir, name+".log")), err
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	answer, err := fetch(ctx, c.http, method, "http://"+c.state.Control+path, c.state.Token, body)
	if refused, ok := errors.AsType[*statusError](err); ok {
		switch refused.status {
		case http.StatusNotFound:
			return &refusal{ErrNoSuchNode, refused.said}
		case http.StatusConflict:
			return &refusal{ErrConflict, refused.said}
		}
		return errors.New(refused.said)
	}
	switch {
	case err != nil:
		return fmt.Errorf("ask the supervisor: %w", err)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("decode the supervisor's answer: %w", err)
	}
	return nil
}

// refusal is an error of the supervisor's, in its words.
type refusal struct {
	kind error
	said string
}

// Error is what the supervisor said.
func (e *refusal) Error() string { return e.said }

// Unwrap is ErrNoSuchNode or ErrConflict.
func (e *refusal) Unwrap() error { return e.kind }

type statusError struct {
	url, said string
	status    int
}

// Error shows the answer.
func (e *statusError) Error() string {
	return fmt.Sprintf("%s answered %d: %s", e.url, e.status, e.said)
}

const answerBytes = 4 << 20

func fetch(ctx context.Context, client *http.Client, method, url, token string, body any) ([]byte, error) {
	var content []byte
	if body != nil {
		content, _ = json.Marshal(body)
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, &statusError{url: url, said: fmt.Sprintf("%.2000s", bytes.TrimSpace(answer)), status: response.StatusCode}
	}
	return answer, nil
}

func get(ctx context.Context, client *http.Client, url, token string) ([]byte, error) {
	return fetch(ctx, client, http.MethodGet, url, token, nil)
}
