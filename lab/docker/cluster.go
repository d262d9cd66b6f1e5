// Package docker lets lab/chaos hurt the containers of docker-compose.yml as it hurts a development cluster's processes: it kills,
// pauses, starts and replaces them, and cuts them off from their network.
//
// It promises nothing of images or of the file: it finds what runs. It is the only package that knows a container engine.
package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/pin"
)

// The ports of docker-compose.yml inside the containers.
const (
	portPage    = 7880
	portControl = 7981
	portStore   = 6379
)

const (
	endLimit   = time.Minute
	readyLimit = 2 * time.Minute
	pollEvery  = 100 * time.Millisecond
)

// Cluster is a Compose project that runs docker-compose.yml.
type Cluster struct {
	engine  *engine
	project string
	page    string
	access  devcluster.Access
	logs    logs
	away    map[string]string // the network and the address of each container that is cut off, by service
}

// Find returns the project's running cluster. Close it.
func Find(ctx context.Context, project string) (*Cluster, error) {
	e, err := newEngine()
	if err != nil {
		return nil, err
	}
	c := &Cluster{engine: e, project: project, away: map[string]string{}}
	list, err := e.containers(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		switch roleOf(one.service()) {
		case devcluster.RoleFront:
			c.page = pageOf(one)
		case devcluster.RoleSignaling:
			d, err := e.inspect(ctx, one.ID)
			if err != nil {
				return nil, err
			}
			if c.access, err = d.access(); err != nil {
				return nil, fmt.Errorf("read the API keys of %s: %w", one.service(), err)
			}
		case devcluster.RoleStore, devcluster.RoleSentinel, devcluster.RoleSFU:
		}
	}
	if c.page == "" || c.access.Key == "" {
		return nil, fmt.Errorf("no cluster of docker-compose.yml runs as project %s (its containers: %d): look at docker-compose ls, or start it", project, len(list))
	}
	c.logs, err = newLogs()
	return c, err
}

// Close forgets the copied logs.
func (c *Cluster) Close() { _ = os.RemoveAll(c.logs.dir) }

// Client is what lab/chaos takes.
func (c *Cluster) Client() *devcluster.Client { return devcluster.ClientOf(c, c.access) }

func roleOf(service string) devcluster.Role {
	switch name, _, _ := strings.Cut(service, "-"); name {
	case "redis":
		return devcluster.RoleStore
	case "sfu":
		return devcluster.RoleSFU
	case "signaling":
		return devcluster.RoleSignaling
	default:
		return devcluster.RoleFront
	}
}

func pageOf(front container) string {
	for _, port := range front.Ports {
		if port.PrivatePort == portPage && port.PublicPort != 0 {
			host := port.IP
			if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
				host = "127.0.0.1"
			}
			return "http://" + net.JoinHostPort(host, strconv.Itoa(int(port.PublicPort))) + "/"
		}
	}
	return ""
}

// access is the first API key of a signaling node, from the host's side of the mounted file.
func (d details) access() (devcluster.Access, error) {
	for _, pair := range d.Config.Env {
		file, ok := strings.CutPrefix(pair, "HOLDFAST_API_KEYS_FILE=")
		for _, mount := range d.Mounts {
			inside, mounted := strings.CutPrefix(file, mount.Destination+"/")
			if !ok || !mounted {
				continue
			}
			text, err := os.ReadFile(filepath.Join(mount.Source, inside))
			first, _, _ := strings.Cut(string(text), "\n")
			key, secret, _ := strings.Cut(first, ":")
			return devcluster.Access{Key: key, Secret: secret}, err
		}
	}
	return devcluster.Access{}, nil
}

// Status lists the containers. One that is paused runs, as a process that is stopped does.
func (c *Cluster) Status(ctx context.Context) (devcluster.Status, error) {
	list, err := c.engine.containers(ctx, c.project)
	status := devcluster.Status{Page: c.page, Ready: true, Name: pin.DefaultCluster, LogDir: c.logs.dir}
	for _, one := range list {
		n := devcluster.Node{Name: one.service(), Role: roleOf(one.service()), State: devcluster.StateDead}
		if one.State == "running" || one.State == "paused" {
			n.State = devcluster.StateRunning
		}
		if ip := one.address(); ip != "" {
			n.Addresses = map[string]string{
				child.AddressControl: net.JoinHostPort(ip, strconv.Itoa(portControl)),
				child.AddressStore:   net.JoinHostPort(ip, strconv.Itoa(portStore)),
			}
		}
		status.Nodes = append(status.Nodes, n)
	}
	slices.SortFunc(status.Nodes, func(a, b devcluster.Node) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name))
	})
	return status, err
}

func (c *Cluster) find(ctx context.Context, service string) (container, error) {
	list, err := c.engine.containers(ctx, c.project)
	i := slices.IndexFunc(list, func(one container) bool { return one.service() == service })
	if err == nil && i < 0 {
		err = fmt.Errorf("%w: project %s has no service %s", devcluster.ErrNoSuchNode, c.project, service)
	}
	if err != nil {
		return container{}, err
	}
	return list[i], nil
}

// Kill pauses by SIGSTOP, goes on by SIGCONT, and sends any other signal. After SIGKILL it waits for the end.
func (c *Cluster) Kill(ctx context.Context, service string, signal syscall.Signal) error {
	one, err := c.find(ctx, service)
	if err != nil {
		return err
	}
	switch signal {
	case syscall.SIGSTOP:
		return c.engine.order(ctx, one.ID, "pause", nil)
	case syscall.SIGCONT:
		return c.engine.order(ctx, one.ID, "unpause", nil)
	case syscall.SIGKILL:
		if err := c.engine.order(ctx, one.ID, "kill", url.Values{"signal": {"KILL"}}); err != nil {
			return err
		}
		return c.until(ctx, endLimit, service, "ends", func(one container) error {
			if one.State != "exited" {
				return fmt.Errorf("it is %s", one.State)
			}
			return nil
		})
	default:
		return c.engine.order(ctx, one.ID, "kill", url.Values{"signal": {strconv.Itoa(int(signal))}})
	}
}

// errVariables refuses what only a process can be started with.
var errVariables = errors.New("a container cannot be started with other variables")

// StartNode starts the same container again, and returns when it is healthy.
func (c *Cluster) StartNode(ctx context.Context, service string, env ...string) (devcluster.Node, error) {
	one, err := c.find(ctx, service)
	if len(env) > 0 {
		err = errVariables
	}
	if err == nil {
		err = c.engine.order(ctx, one.ID, "start", nil)
	}
	if err == nil {
		err = c.healthy(ctx, service)
	}
	return devcluster.Node{Name: service, Role: roleOf(service), State: devcluster.StateRunning}, err
}

func (c *Cluster) healthy(ctx context.Context, service string) error {
	return c.until(ctx, readyLimit, service, "is healthy", func(one container) error {
		d, err := c.engine.inspect(ctx, one.ID)
		if err == nil && (d.State.Health == nil || d.State.Health.Status != "healthy") {
			err = errors.New("it is not")
		}
		return err
	})
}

func (c *Cluster) until(ctx context.Context, limit time.Duration, service, what string, check func(container) error) error {
	deadline := time.Now().Add(limit)
	for {
		one, err := c.find(ctx, service)
		if err == nil {
			err = check(one)
		}
		switch {
		case err == nil:
			return nil
		case time.Now().After(deadline) || !backoff.Sleep(ctx, pollEvery):
			return fmt.Errorf("wait until %s %s: %w", service, what, err)
		}
	}
}

// disconnected is the body of both orders about a network.
type disconnected struct {
	Container      string
	EndpointConfig *endpoint `json:",omitempty"`
}

type endpoint struct{ Aliases []string }

// Cut takes a container off its network, as a pulled cable does.
func (c *Cluster) Cut(ctx context.Context, service string) error {
	one, err := c.find(ctx, service)
	if err != nil {
		return err
	}
	for name, network := range one.NetworkSettings.Networks {
		if err := c.engine.ask(ctx, http.MethodPost, "/networks/"+url.PathEscape(name)+"/disconnect", nil, disconnected{Container: one.ID}, nil); err != nil {
			return err
		}
		c.away[service] = name + " " + network.IPAddress
		return nil
	}
	return fmt.Errorf("%s is in no network", service)
}

// Join puts it back at its address: a node that comes back elsewhere is another one to its cluster.
func (c *Cluster) Join(ctx context.Context, service string) (wasAway bool, err error) {
	one, err := c.find(ctx, service)
	if err != nil {
		return false, err
	}
	name, address, cut := strings.Cut(c.away[service], " ")
	if !cut {
		return false, fmt.Errorf("%s was not cut off", service)
	}
	wasAway = len(one.NetworkSettings.Networks) == 0
	delete(c.away, service)
	body := disconnected{Container: one.ID, EndpointConfig: &endpoint{Aliases: []string{service}}}
	if err := c.engine.ask(ctx, http.MethodPost, "/networks/"+url.PathEscape(name)+"/connect", nil, body, nil); err != nil {
		return wasAway, err
	}
	if one, err = c.find(ctx, service); err == nil && one.address() != address {
		err = fmt.Errorf("%s came back at %s, before at %s: the engine gave its address away; recreate it", service, one.address(), address)
	}
	return wasAway, err
}

// composeFiles are the file's paths as Compose noted them.
func composeFiles(labels map[string]string) (files []string) {
	for file := range strings.SplitSeq(labels[labelFiles], ",") {
		if !filepath.IsAbs(file) {
			file = filepath.Join(labels[labelDir], file)
		}
		files = append(files, "-f", file)
	}
	return files
}
