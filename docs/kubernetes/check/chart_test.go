package check

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the manifests of docs/kubernetes anew, from the chart")

// plain are the values of the manifests that need no Helm.
const plain = "createNamespace: true"

const madeFrom = "# Made from ../helm/holdfast by \"go -C docs/kubernetes/check test -update\": change it there.\n"

// render does what helm template does, with the values given in YAML, and returns the documents of each file.
func render(t *testing.T, values string) (map[string][]byte, error) {
	t.Helper()
	chart, err := loader.LoadDir("../../helm/holdfast")
	if err != nil {
		t.Fatal(err)
	}
	var given map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	options := common.ReleaseOptions{Name: "calls", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, given, options, &common.Capabilities{KubeVersion: common.KubeVersion{Version: "v1.30.0", Major: "1", Minor: "30"}})
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{Strict: true}.Render(chart, all)
	files := map[string][]byte{}
	for name, text := range rendered {
		files["../"+path.Base(name)] = []byte(text)
	}
	return files, err
}

// TestManifestsAreTheChart: nothing is written twice. The manifests for people without Helm are the chart with its default values.
func TestManifestsAreTheChart(t *testing.T) {
	files, err := render(t, plain)
	if err != nil || len(files) != 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for name, text := range files {
		want := append([]byte(madeFrom), text...)
		if *update {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the chart says (%v): run go -C docs/kubernetes/check test -update", name, err)
		}
	}
}

// charted are the manifests of the chart, with the documents beside them that judge needs.
func charted(t *testing.T, values string) map[string][]byte {
	t.Helper()
	files, err := render(t, values)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	all := manifests(t)
	maps.Copy(all, files)
	return all
}

// TestChart renders the chart with each of its values, and checks the result as it checks the manifests.
func TestChart(t *testing.T) {
	roles := rolesOf(t)
	for values, want := range map[string]string{
		"": "namespace: holdfast",
		"{media: {stun: 'stun.example.org:3478', env: {HOLDFAST_EGRESS_BITS: '4000000000'}}}":               "HOLDFAST_MEDIA_STUN",
		"{media: {metricsListen: ':7990'}}":                                                                 "http://127.0.0.1:7990/readyz",
		"{media: {hostNetwork: false}}":                                                                     "hostPort: 7982",
		"{media: {drainSeconds: 300, replicas: 7, maxUnavailable: 1}}":                                      "terminationGracePeriodSeconds: 330",
		"{signaling: {drainSeconds: 60}}":                                                                   "terminationGracePeriodSeconds: 80",
		"{signaling: {proxyProtocolFrom: 10.1.0.0/16}}":                                                     "HOLDFAST_PROXY_PROTOCOL_FROM",
		"{image: {repository: registry.example.org/holdfast, tag: 1.2.3, pullSecrets: [{name: registry}]}}": "registry.example.org/holdfast:1.2.3",
		"{turn: {servers: ['turn:turn.example.org:3478', 'turns:turn.example.org:443'], secret: turn}}":     "turn:turn.example.org:3478,turns:turn.example.org:443",
		"{storeSecret: {name: store, key: url}}":                                                            "key: url",
		"{media: {nodeSelector: {media: 'yes'}, tolerations: [{key: media, operator: Exists}]}}":            "operator: Exists",
		"{networkPolicy: {enabled: true, clients: [{namespaceSelector: {}}], nodes: [10.2.0.0/16]}}":        "cidr: 10.2.0.0/16",
	} {
		files := charted(t, values)
		if err := judge(files, roles); err != nil {
			t.Errorf("with %s: %v", values, err)
		}
		if !slices.ContainsFunc(slices.Collect(maps.Values(files)), func(text []byte) bool { return bytes.Contains(text, []byte(want)) }) {
			t.Errorf("with %s there is no %q", values, want)
		}
	}
}

// TestWrongValues: the schema of the chart refuses what would fail later, or would be ignored.
func TestWrongValues(t *testing.T) {
	for _, values := range []string{
		"{medai: {}}", "{media: {replicas: 0}}", "{media: {replcas: 3}}", "{store: 'http://redis'}", "{secret: ''}", "{cluster: Holdfast}",
		"{media: {env: {EGRESS: '1'}}}", "{media: {metricsListen: ''}}", "{storeSecret: {name: x}}", "{turn: {servers: ['turn.example.org']}}", "{signaling: {drainSeconds: 30s}}",
	} {
		if _, err := render(t, values); err == nil {
			t.Errorf("%s is accepted", values)
		}
	}
}

// TestChartIsOfThisVersion asks the binary which version it is.
func TestChartIsOfThisVersion(t *testing.T) {
	said, err := exec.CommandContext(t.Context(), binaryOf(t), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	chart, err := loader.LoadDir("../../helm/holdfast")
	if err != nil {
		t.Fatal(err)
	}
	if m := chart.Metadata; !strings.HasPrefix(string(said), "holdfast "+m.AppVersion+",") || m.Version != m.AppVersion || chart.Validate() != nil {
		t.Errorf("the chart is %s for version %s, and the binary says %s", m.Version, m.AppVersion, said)
	}
}
