package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
)

const (
	defaultSocket = "/var/run/docker.sock"
	answerBytes   = 16 << 20
)

// ErrNoEngine is returned when no container engine answers.
var ErrNoEngine = errors.New("no container engine answers")

// engine speaks to the container engine's API over its socket.
type engine struct{ http *http.Client }

// newEngine uses the socket that DOCKER_HOST names, or Docker's usual one.
func newEngine() (*engine, error) {
	socket := defaultSocket
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		path, local := strings.CutPrefix(host, "unix://")
		if !local {
			return nil, fmt.Errorf("DOCKER_HOST is %s: give unix://PATH, for containers are reached at their own addresses", host)
		}
		socket = path
	}
	var dialer net.Dialer
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", socket)
	}}
	return &engine{&http.Client{Transport: transport}}, nil
}

// ask decodes the answer into what into points to, unless that is nil.
func (e *engine) ask(ctx context.Context, method, path string, query url.Values, body, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode a request to the engine: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://engine/v1.40"+path+"?"+query.Encode(), bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("ask the engine for %s: %w", path, err)
	}
	if body == nil {
		request.Body, request.ContentLength = http.NoBody, 0
	} else {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := e.http.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoEngine, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return fmt.Errorf("read the engine's answer: %w", err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		var said struct{ Message string }
		_ = json.Unmarshal(answer, &said) // the status says it too
		return fmt.Errorf("the container engine answered %s %s with %s: %.500s", method, path, response.Status, said.Message)
	}
	if into == nil || len(answer) == 0 {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("decode the engine's answer to %s: %w", path, err)
	}
	return nil
}

// container is one of a project, as the engine lists it.
type container struct {
	ID     string `json:"Id"`
	State  string // created, running, paused, restarting, exited, ...
	Labels map[string]string
	Ports  []struct {
		IP                      string
		PrivatePort, PublicPort uint16
	}
	NetworkSettings struct {
		Networks map[string]struct{ IPAddress string }
	}
}

// The labels that Compose gives its containers.
const (
	labelProject = "com.docker.compose.project"
	labelService = "com.docker.compose.service"
	labelDir     = "com.docker.compose.project.working_dir"
	labelFiles   = "com.docker.compose.project.config_files"
)

func (c container) service() string { return c.Labels[labelService] }

// address is that in the project's network; empty while it is cut off or does not run.
func (c container) address() string {
	for _, network := range c.NetworkSettings.Networks {
		return network.IPAddress
	}
	return ""
}

func (e *engine) containers(ctx context.Context, project string) ([]container, error) {
	filters, _ := json.Marshal(map[string][]string{"label": {labelProject + "=" + project}}) // strings can be encoded
	var list []container
	err := e.ask(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}}, nil, &list)
	return list, err
}

// details are what the list does not have.
type details struct {
	Config struct{ Env []string }
	Mounts []struct{ Source, Destination string }
	State  struct {
		Health *struct{ Status string }
	}
}

func (e *engine) inspect(ctx context.Context, id string) (d details, err error) {
	return d, e.ask(ctx, http.MethodGet, "/containers/"+id+"/json", nil, nil, &d)
}

func (e *engine) order(ctx context.Context, id, what string, query url.Values) error {
	return e.ask(ctx, http.MethodPost, "/containers/"+id+"/"+what, query, nil, nil)
}
