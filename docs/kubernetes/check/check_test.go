// Package check compares the manifests of docs/kubernetes with the types of Kubernetes, with each other, and with the
// flags of the binary. It is a module of its own, so that Holdfast itself does not depend on Kubernetes.
package check

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

const namespace = "holdfast"

// objects are the manifests' in their order.
type objects struct {
	names     map[string]bool
	workloads []workload
	services  []*core.Service
	configs   map[string]map[string]string
	budgets   []*policy.PodDisruptionBudget
	policies  []*networking.NetworkPolicy
}

type workload struct {
	name     string
	selector *meta.LabelSelector
	service  string // of a StatefulSet
	template core.PodTemplateSpec
}

// read decodes a file's documents strictly.
func (o *objects) read(file []byte) error {
	for _, text := range bytes.Split(file, []byte("\n---\n")) {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal(text, &kind); err != nil {
			return err
		}
		if err := o.add(kind, text); err != nil {
			return fmt.Errorf("%s: %w", kind.Kind, err)
		}
	}
	return nil
}

func (o *objects) add(kind meta.TypeMeta, text []byte) error {
	var header meta.ObjectMeta
	var err error
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 Namespace":
		var n core.Namespace
		err = yaml.UnmarshalStrict(text, &n)
		if n.Name != namespace || n.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
			return fmt.Errorf("namespace %s, labels %v: media nodes use the host's network", n.Name, n.Labels)
		}
		return err
	case "v1 ConfigMap":
		var c core.ConfigMap
		err = yaml.UnmarshalStrict(text, &c)
		header, o.configs[c.Name] = c.ObjectMeta, c.Data
	case "v1 Service":
		s := new(core.Service)
		err = yaml.UnmarshalStrict(text, s)
		header, o.services = s.ObjectMeta, append(o.services, s)
	case "apps/v1 StatefulSet":
		var s apps.StatefulSet
		err = yaml.UnmarshalStrict(text, &s)
		header, o.workloads = s.ObjectMeta, append(o.workloads, workload{s.Name, s.Spec.Selector, s.Spec.ServiceName, s.Spec.Template})
		if s.Spec.PodManagementPolicy != apps.ParallelPodManagement {
			return fmt.Errorf("a media node waits for an earlier one: %q", s.Spec.PodManagementPolicy)
		}
	case "apps/v1 Deployment":
		var d apps.Deployment
		err = yaml.UnmarshalStrict(text, &d)
		header, o.workloads = d.ObjectMeta, append(o.workloads, workload{d.Name, d.Spec.Selector, "", d.Spec.Template})
	case "policy/v1 PodDisruptionBudget":
		b := new(policy.PodDisruptionBudget)
		err = yaml.UnmarshalStrict(text, b)
		header, o.budgets = b.ObjectMeta, append(o.budgets, b)
	case "networking.k8s.io/v1 NetworkPolicy":
		p := new(networking.NetworkPolicy)
		err = yaml.UnmarshalStrict(text, p)
		header, o.policies = p.ObjectMeta, append(o.policies, p)
	default:
		return fmt.Errorf("%s is of no known kind", kind.APIVersion)
	}
	id := kind.Kind + " " + header.Name
	switch {
	case err != nil:
		return err
	case header.Namespace != namespace:
		return fmt.Errorf("%s is in namespace %q", id, header.Namespace)
	case header.Name == "" || o.names[id]:
		return fmt.Errorf("%q is there twice, or has no name", id)
	}
	o.names[id] = true
	return nil
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

func (o *objects) selected(selector map[string]string) (some []workload) {
	for _, w := range o.workloads {
		if selects(selector, w.template.Labels) {
			some = append(some, w)
		}
	}
	return some
}

// A role is a subcommand of the binary.
type role struct {
	variables map[string]string // by flag
	ports     map[string]int32  // that it listens at by default
	probes    []string
	environs  []string // that its manifest must set; A|B is one of both
}

// check returns the first thing that is wrong with the manifests as a whole.
func (o *objects) check(roles map[string]role, readme string) error {
	image := ""
	for _, w := range o.workloads {
		if !selects(w.selector.MatchLabels, w.template.Labels) {
			return fmt.Errorf("%s does not select its own pods", w.name)
		}
		pod := w.template.Spec
		for _, spread := range pod.TopologySpreadConstraints {
			if !selects(spread.LabelSelector.MatchLabels, w.template.Labels) {
				return fmt.Errorf("%s is not spread", w.name)
			}
		}
		if c := pod.SecurityContext; c == nil || !*c.RunAsNonRoot || c.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || *pod.AutomountServiceAccountToken {
			return fmt.Errorf("%s may more than it needs", w.name)
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
				return fmt.Errorf("%s may more than it needs", c.Name)
			}
			if c.Name != w.name {
				return fmt.Errorf("container %s of %s", c.Name, w.name)
			}
			if err := probed(&c); err != nil {
				return err
			}
			role, ours := roles[c.Args[0]]
			if !ours {
				continue
			}
			if !strings.Contains(readme, "/"+w.name) || c.Args[0] != w.name {
				return fmt.Errorf("%s runs %s, and is so named, and in README.md", w.name, c.Args[0])
			}
			if image != "" && c.Image != image {
				return fmt.Errorf("images %s and %s", image, c.Image)
			}
			image = c.Image
			if err := o.checkNode(role, &pod, &c, readme); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
		if budgets := slices.DeleteFunc(slices.Clone(o.budgets), func(b *policy.PodDisruptionBudget) bool {
			return b.Name != w.name || len(o.selected(b.Spec.Selector.MatchLabels)) != 1 || !selects(b.Spec.Selector.MatchLabels, w.template.Labels) || b.Spec.MaxUnavailable.IntVal != 1
		}); len(budgets) != 1 && w.name != "redis" {
			return fmt.Errorf("%s has %d PodDisruptionBudgets", w.name, len(budgets))
		}
		if w.service != "" && !slices.ContainsFunc(o.services, func(s *core.Service) bool { return s.Name == w.service && s.Spec.ClusterIP == core.ClusterIPNone }) {
			return fmt.Errorf("%s has no headless service %s", w.name, w.service)
		}
	}
	for _, p := range o.policies {
		some := o.selected(p.Spec.PodSelector.MatchLabels)
		if len(some) != 1 || some[0].template.Spec.HostNetwork {
			return fmt.Errorf("NetworkPolicy %s is of %d workloads, or of one on the host's network", p.Name, len(some))
		}
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				protocol := core.ProtocolTCP
				if port.Protocol != nil {
					protocol = *port.Protocol
				}
				if !has(&some[0].template.Spec.Containers[0], *port.Port, protocol) || len(rule.From) == 0 {
					return fmt.Errorf("NetworkPolicy %s opens port %s, which is none, or opens it to everybody", p.Name, port.Port.String())
				}
			}
		}
	}
	return o.reached(image, readme)
}

func probed(c *core.Container) error {
	for _, list := range []core.ResourceList{c.Resources.Requests, c.Resources.Limits} {
		for name := range list {
			if name != core.ResourceCPU && name != core.ResourceMemory {
				return fmt.Errorf("%s asks for %s", c.Name, name)
			}
		}
	}
	for _, probe := range []*core.Probe{c.ReadinessProbe, c.LivenessProbe} {
		if probe == nil {
			continue
		}
		var port intstr.IntOrString
		switch { // Anything else is a port without a name.
		case probe.HTTPGet != nil:
			port = probe.HTTPGet.Port
		case probe.TCPSocket != nil:
			port = probe.TCPSocket.Port
		case probe.Exec != nil:
			continue
		}
		if !has(c, port, core.ProtocolTCP) {
			return fmt.Errorf("%s is probed at %s, where it does not listen", c.Name, port.String())
		}
	}
	return nil
}

func has(c *core.Container, port intstr.IntOrString, protocol core.Protocol) bool {
	return slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool {
		return p.Name == port.StrVal && protocolOf(p.Protocol) == protocol
	})
}

func protocolOf(p core.Protocol) core.Protocol {
	if p == "" {
		return core.ProtocolTCP
	}
	return p
}

var secretKeys = regexp.MustCompile(`--from-literal=([a-z-]+)=`)

// keyFiles compares the variables that name files with what is mounted, and that with the Secret that README.md makes.
func keyFiles(pod *core.PodSpec, c *core.Container, readme string) error {
	mounted := map[string]bool{}
	for _, m := range c.VolumeMounts {
		at := slices.IndexFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
		if at < 0 || !m.ReadOnly || m.SubPath != "" {
			return fmt.Errorf("%s is no volume, is not read-only, or does not follow changes", m.Name)
		}
		secret := pod.Volumes[at].Secret
		if !strings.Contains(readme, "create secret generic "+secret.SecretName+" ") || *secret.DefaultMode != 0o440 || *pod.SecurityContext.FSGroup != *pod.SecurityContext.RunAsGroup {
			return fmt.Errorf("README.md makes no Secret %s, or the node may not read it", secret.SecretName)
		}
		for _, item := range secret.Items {
			if !slices.ContainsFunc(secretKeys.FindAllStringSubmatch(readme, -1), func(m []string) bool { return m[1] == item.Key }) {
				return fmt.Errorf("README.md makes no key %s of a Secret %s", item.Key, secret.SecretName)
			}
			mounted[m.MountPath+"/"+item.Path] = true
		}
	}
	for _, e := range c.Env {
		if strings.HasSuffix(e.Name, "_FILE") {
			if !mounted[e.Value] {
				return fmt.Errorf("%s names %s, which is not mounted", e.Name, e.Value)
			}
			delete(mounted, e.Value)
		}
	}
	if len(mounted) > 0 {
		return fmt.Errorf("nobody reads %v", mounted)
	}
	return nil
}

// checkNode compares a container with what its role knows.
func (o *objects) checkNode(r role, pod *core.PodSpec, c *core.Container, readme string) error {
	drain := time.Duration(0)
	for i, arg := range c.Args[1:] {
		if strings.HasPrefix(arg, "--") && r.variables[arg] == "" {
			return fmt.Errorf("no flag %s", arg)
		}
		if arg == "--drain-timeout" {
			drain, _ = time.ParseDuration(c.Args[i+2])
		}
	}
	before := time.Duration(0)
	if l := c.Lifecycle; l != nil {
		before = time.Duration(l.PreStop.Sleep.Seconds) * time.Second
	}
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; drain == 0 || grace < before+drain+10*time.Second {
		return fmt.Errorf("it is killed %v after it is asked to end, and drains for %v", grace, drain)
	}
	known := slices.Collect(maps.Values(r.variables))
	set := map[string]bool{}
	for _, from := range c.EnvFrom {
		data, ok := o.configs[from.ConfigMapRef.Name]
		if !ok {
			return fmt.Errorf("no ConfigMap %s", from.ConfigMapRef.Name)
		}
		for name := range data {
			set[name] = true
		}
	}
	for _, e := range c.Env {
		if set[e.Name] {
			return fmt.Errorf("%s is set twice", e.Name)
		}
		set[e.Name] = true
		from := e.ValueFrom
		switch {
		case from == nil:
		case from.FieldRef != nil && !slices.Contains([]string{"metadata.name", "status.podIP", "status.hostIP"}, from.FieldRef.FieldPath):
			return fmt.Errorf("%s is of field %s", e.Name, from.FieldRef.FieldPath)
		case from.SecretKeyRef != nil && (from.SecretKeyRef.Name == "" || from.SecretKeyRef.Key == ""):
			return fmt.Errorf("%s is of no secret", e.Name)
		}
	}
	if err := keyFiles(pod, c, readme); err != nil {
		return err
	}
	for name := range set {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the binary knows no %s", name)
		}
	}
	for _, names := range r.environs {
		if !slices.ContainsFunc(strings.Split(names, "|"), func(name string) bool { return set[name] }) {
			return fmt.Errorf("%s is not set", names)
		}
	}
	if pod.HostNetwork && pod.DNSPolicy != core.DNSClusterFirstWithHostNet {
		return fmt.Errorf("on the host's network it does not find the others: dnsPolicy %q", pod.DNSPolicy)
	}
	ports := map[string]int32{}
	for _, p := range c.Ports {
		ports[p.Name+"/"+string(protocolOf(p.Protocol))] = p.ContainerPort
		if pod.HostNetwork && p.HostPort != p.ContainerPort {
			return fmt.Errorf("port %s is %d of the host", p.Name, p.HostPort)
		}
	}
	if !maps.Equal(ports, r.ports) {
		return fmt.Errorf("its ports are %v, want %v", ports, r.ports)
	}
	var probes []string
	if p := c.ReadinessProbe; p.HTTPGet != nil {
		probes = []string{p.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path}
	} else if err := asksItself(c); err != nil {
		return err
	}
	if !slices.Equal(probes, r.probes) {
		return fmt.Errorf("its probes are %v", probes)
	}
	return nil
}

// asksItself checks the probe of a media node: the binary asks the port of --metrics-listen, and has the time to say why the node is not ready.
func asksItself(c *core.Container) error {
	at := slices.IndexFunc(c.Env, func(e core.EnvVar) bool { return e.Name == "HOLDFAST_METRICS_LISTEN" })
	if at < 0 {
		return fmt.Errorf("%s does not listen where its readiness is asked", c.Name)
	}
	listen := c.Env[at].Value
	want := []string{"/holdfast", "health", "http://127.0.0.1:" + listen[strings.LastIndex(listen, ":")+1:] + "/readyz"}
	if p := c.ReadinessProbe; c.LivenessProbe != nil || !slices.Equal(p.Exec.Command, want) || p.TimeoutSeconds < 3 {
		return fmt.Errorf("%s is probed by %q in %d s, want %q", c.Name, p.Exec.Command, p.TimeoutSeconds, want)
	}
	return nil
}

// reached compares services with pods, and the addresses of the ConfigMap with services.
func (o *objects) reached(image, readme string) error {
	addresses := map[string]*core.Service{}
	for _, s := range o.services {
		some := o.selected(s.Spec.Selector)
		if len(some) == 0 {
			return fmt.Errorf("service %s selects nobody", s.Name)
		}
		if s.Spec.ClusterIP == "" && s.Name != "redis" && !strings.Contains(readme, "Service `"+s.Name+"`") {
			return fmt.Errorf("README.md does not say what service %s is for", s.Name)
		}
		for _, port := range s.Spec.Ports {
			addresses[fmt.Sprintf("%s.%s.svc.cluster.local:%d", s.Name, s.Namespace, port.Port)] = s
			for _, w := range some {
				if !has(&w.template.Spec.Containers[0], port.TargetPort, protocolOf(port.Protocol)) {
					return fmt.Errorf("service %s: %s has no port %s", s.Name, w.name, port.TargetPort.String())
				}
			}
		}
	}
	config := o.configs["holdfast"]
	gossip := addresses[config["HOLDFAST_JOIN"]]
	if gossip == nil || gossip.Spec.ClusterIP != core.ClusterIPNone || !gossip.Spec.PublishNotReadyAddresses || len(gossip.Spec.Ports) != 2 {
		return fmt.Errorf("HOLDFAST_JOIN is %s, which is no service of all nodes, ready or not, by TCP and UDP", config["HOLDFAST_JOIN"])
	}
	for _, w := range o.workloads {
		if w.template.Spec.Containers[0].Image == image && !selects(gossip.Spec.Selector, w.template.Labels) {
			return fmt.Errorf("%s is not found by HOLDFAST_JOIN", w.name)
		}
	}
	url, fixed := config["HOLDFAST_STORE"]
	if store := strings.TrimPrefix(url, "redis://"); fixed && addresses[store] == nil || config["HOLDFAST_CLUSTER"] == "" {
		return fmt.Errorf("the store of try/ is not at %s", store)
	}
	_, port, err := net.SplitHostPort(config["HOLDFAST_JOIN"])
	if err != nil || port != "7946" {
		return fmt.Errorf("gossip is at %s", config["HOLDFAST_JOIN"])
	}
	return nil
}

// judge reads and checks what is written.
func judge(files map[string][]byte, roles map[string]role) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("something is missing: %v", r)
		}
	}()
	o := &objects{names: map[string]bool{}, configs: map[string]map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		if err := o.read(files[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return o.check(roles, string(files["../README.md"]))
}

var (
	flagLine = regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)`)
	variable = regexp.MustCompile(`\$(HOLDFAST_[A-Z_]+)`)
)

// binaryOf builds the binary of nodes.
func binaryOf(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "holdfast")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "node", "-o", binary, ".")
	build.Dir = "../../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return binary
}

// rolesOf asks the binary what it knows.
func rolesOf(t *testing.T) map[string]role {
	t.Helper()
	binary := binaryOf(t)
	everywhere := []string{"HOLDFAST_NAME", "HOLDFAST_JOIN", "HOLDFAST_STORE", "HOLDFAST_CLUSTER", "HOLDFAST_CLUSTER_KEY_FILE", "HOLDFAST_GOSSIP_ADVERTISE"}
	roles := map[string]role{
		"sfu": {
			ports:    map[string]int32{"media/UDP": 7982, "media-tcp/TCP": 7982, "control/TCP": 7981, "gossip/TCP": 7946, "gossip-udp/UDP": 7946},
			environs: append(everywhere, "HOLDFAST_CONTROL_ADVERTISE", "HOLDFAST_MEDIA_ADVERTISE|HOLDFAST_MEDIA_STUN"),
		},
		"signaling": {
			ports:    map[string]int32{"http/TCP": 7880, "control/TCP": 7983, "gossip/TCP": 7946, "gossip-udp/UDP": 7946},
			probes:   []string{"/readyz", "/healthz"},
			environs: append(everywhere, "HOLDFAST_ADVERTISE", "HOLDFAST_API_KEYS_FILE", "HOLDFAST_TRUSTED_PROXIES|HOLDFAST_PROXY_PROTOCOL_FROM"),
		},
	}
	for name, r := range roles {
		help, err := exec.CommandContext(t.Context(), binary, name, "--help").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range r.ports {
			if !bytes.Contains(help, fmt.Appendf(nil, "\":%d\"", port)) {
				t.Errorf("%s does not listen at %d by default", name, port)
			}
		}
		// What stands between one flag and the next is of that flag.
		r.variables = map[string]string{}
		starts := flagLine.FindAllSubmatchIndex(help, -1)
		for i, at := range starts {
			end := len(help)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			if found := variable.FindSubmatch(help[at[0]:end]); found != nil {
				r.variables[string(help[at[2]:at[3]])] = string(found[1])
			}
		}
		roles[name] = r
	}
	return roles
}

func manifests(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range []string{"../*.yaml", "../try/*.yaml", "../README.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			if files[name], err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files
}

func TestManifests(t *testing.T) {
	if err := judge(manifests(t), rolesOf(t)); err != nil {
		t.Error(err)
	}
}

// free are lines in which another word is another wish, and no mistake.
var free = regexp.MustCompile(`(Seconds|replicas|maxSkew|seconds|failureThreshold|cpu|memory|maxSurge|runAs(User|Group)|value|` +
	`topologyKey|whenUnsatisfiable|HOLDFAST_CLUSTER): |redis|"sfu", "|"signaling", "|type: RuntimeDefault|maxUnavailable: 0|^    - name: `)

var (
	key   = regexp.MustCompile(`^[ -]*"?([A-Za-z./_-]+)"?:`)
	value = regexp.MustCompile(`: "?([A-Za-z0-9./:_-]+)"?`)
)

// TestMistakesAreSeen misspells each key, and each word that must be what it is.
func TestMistakesAreSeen(t *testing.T) {
	files, roles := manifests(t), rolesOf(t)
	mistakes := 0
	for name, text := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for what, pattern := range map[string]*regexp.Regexp{"key": key, "value": value} {
				at := pattern.FindStringSubmatchIndex(line)
				if at == nil || what == "value" && free.MatchString(line) {
					continue
				}
				wrong := slices.Clone(lines)
				wrong[i] = line[:at[3]] + "x" + line[at[3]:]
				changed := maps.Clone(files)
				changed[name] = []byte(strings.Join(wrong, "\n"))
				if err := judge(changed, roles); err == nil {
					t.Errorf("%s:%d: %q is not seen", name, i+1, wrong[i])
				}
				mistakes++
			}
		}
	}
	if mistakes < 200 {
		t.Errorf("only %d mistakes were tried", mistakes)
	}
	t.Logf("%d mistakes", mistakes)
}
