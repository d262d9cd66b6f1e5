package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is our own import path.
const module = "github.com/holdfast-rtc/holdfast"

// floors are the packages of the house from the roof to the ground, as in
// docs/ARCHITECTURE.md. A package imports packages of lower floors only, in its
// tests too; packages of one floor do not know each other.
var floors = [][]string{
	{"."},
	{"cli", "internal/release"},
	{"top"},
	{"lab/e2e", "lab/attack", "lab/chaos", "lab/load", "lab/sim"},
	{"lab/docker"},
	{"lab/devcluster", "lab/peer", "lab/browser", "lab/measure", "lab/hosts", "lab/portrait/record"},
	{"lab/portrait"},
	{"node"},
	{"balancer", "signaling"},
	{"signaling/rest", "signaling/twirp"},
	{"signaling/hub", "signaling/moderation", "signaling/door"},
	{"signaling/translate", "signaling/sfulink", "signaling/nodelink", "signaling/relay", "signaling/mediacheck", "signaling/endings", "signaling/gaps", "signaling/replica", "signaling/operator", "signaling/reply", "web"},
	{"signaling/access", "signaling/limits"},
	{"signaling/fault", "signaling/twirp/twirppb"},
	{"signaling/livekit"},
	{"signaling/wire", "signaling/livekit/livekitpb"},
	{"failover", "orchestrator/history"},
	{"orchestrator"},
	{"orchestrator/pinowner"},
	{"orchestrator/pincache"},
	{"redisstore"},
	{"redisstore/storetest"},
	{"cluster", "people/presence"},
	{"sfu"},
	{"sfu/connection", "sfu/cascade", "sfu/standby"},
	{"sfu/share", "sfu/sources", "sfu/spread"},
	{"sfu/forward"},
	{"sfu/forward/layerfilter"},
	{"sfu/forward/parse", "sfu/forward/rtptime", "sfu/forward/renumber"},
	{"sfu/bandwidth", "sfu/reception", "sfu/offer", "sfu/transport", "sfu/data"},
	{"sfu/egress", "sfu/h264", "sfu/descriptor"},
	{"control", "people/roster", "internal/webhook"},
	{"internal/traces"},
	{"internal/testkit"},
	{"people/waitlist", "people/messaging"},
	{"internal/events", "internal/metrics"},
	{"pin", "internal/panics", "failover/relief", "failover/suspicion", "internal/invocation"},
	{"ring/paper"},
	{"ring", "headroom", "internal/failpoint", "internal/connlimit", "internal/readiness", "internal/backoff", "internal/loglimit", "internal/tool", "internal/fakeclock", "internal/child", "internal/build", "internal/tty", "internal/nodelist"},
}

// technology is an import that few may know. The rest of the house speaks its
// own nouns, so that it can be read, tested and replaced without it.
type technology struct {
	prefix string   // of the import path
	users  []string // who may import it
	tests  []string // who may, besides, in test files
	reason string
}

var technologies = []technology{
	{
		"github.com/hashicorp/memberlist",
		[]string{"cluster"},
		nil,
		"only cluster knows gossip: the others read an immutable view, which no callback can change under them",
	},
	{
		"github.com/redis/go-redis",
		[]string{"redisstore", "redisstore/storetest"},
		nil,
		"every key and script is in redisstore, so that what is atomic can be judged in one place",
	},
	{
		"github.com/alicebob/miniredis",
		[]string{"lab/devcluster", "redisstore/storetest"},
		[]string{"redisstore", "orchestrator"},
		"the embedded store is for development and tests; production code sees a Redis over TCP and nothing else",
	},
	{
		"github.com/pion",
		[]string{"sfu", "sfu/cascade", "sfu/connection", "sfu/data", "sfu/forward", "sfu/reception", "sfu/transport", "signaling/relay", "signaling/mediacheck", "lab/peer"},
		[]string{"lab/attack", "lab/e2e", "sfu/offer", "sfu/forward/parse"},
		"only the media node, the relay and what tries media sockets know Pion; lab/peer is a client that knows it as a browser would",
	},
	{
		"github.com/coder/websocket",
		[]string{"signaling", "lab/peer"},
		[]string{"lab/attack", "lab/e2e"},
		"only signaling nodes know sockets: a room's messages are the structs of signaling/wire",
	},
	{
		"github.com/pires/go-proxyproto",
		[]string{"balancer", "signaling"},
		nil,
		"who stands behind a connection is decided where it is accepted",
	},
	{
		"google.golang.org/grpc",
		[]string{"control", "sfu", "signaling/sfulink", "signaling/nodelink", "signaling/mediacheck"},
		[]string{"failover", "signaling", "lab/e2e", "sfu/cascade"},
		"gRPC ends at control and the two ends that speak it; everything above calls their methods",
	},
	{
		"go.opentelemetry.io",
		[]string{"internal/traces", "internal/testkit"},
		nil,
		"the others begin and end steps by traces, which costs nothing when it is off; testkit is the collector of tests",
	},
	{
		"google.golang.org/protobuf",
		[]string{"control", "sfu", "signaling/sfulink", "signaling/nodelink", "signaling/livekit", "signaling/livekit/livekitpb", "signaling/twirp", "signaling/twirp/twirppb", "internal/testkit", "lab/attack"},
		[]string{"sfu/standby", "failover", "signaling", "signaling/rest"},
		"protobuf messages are those of the control protocol and of LiveKit's clients, not a data model",
	},
	{
		"github.com/go-chi/chi",
		[]string{"signaling/rest"},
		nil,
		"only signaling nodes route HTTP",
	},
	{
		"github.com/golang-jwt/jwt",
		[]string{"signaling/access"},
		nil,
		"tokens are judged in one place: an algorithm that is checked twice is checked once wrongly",
	},
	{
		"github.com/CycloneDX",
		[]string{"internal/release"},
		nil,
		"bills of materials are made once, at a release",
	},
	{
		"golang.org/x/crypto/x509roots",
		[]string{"internal/release"},
		nil,
		"the binary trusts the authorities of its machine; only the image brings some",
	},
	{
		"github.com/alecthomas/kong",
		[]string{"cli"},
		nil,
		"configuration reaches packages as structs; cli makes flags and variables of their fields",
	},
	{
		"charm.land",
		[]string{"top"},
		nil,
		"one live screen is worth a library for terminals; everything else prints lines",
	},
	{
		"github.com/charmbracelet",
		[]string{"top"},
		nil,
		"it belongs to the library for terminals",
	},
	{
		"golang.org/x/crypto/acme",
		[]string{"node"},
		nil,
		"the other packages are given certificates and do not know where they come from",
	},
	{
		"github.com/chromedp",
		[]string{"lab/browser"},
		[]string{"lab/e2e", "sfu", "web"},
		"a browser drives tests and the lab, never the product",
	},
	{
		"github.com/anishathalye/porcupine", nil,
		[]string{"orchestrator/history"},
		"histories are judged in one place, by one model",
	},
	{
		"github.com/prometheus",
		[]string{"internal/metrics"},
		[]string{"lab/e2e"},
		"all names, labels and buckets stand in one place; the other packages tell it in their own nouns",
	},
	{
		"os/signal",
		[]string{"cli"},
		[]string{"cluster", "lab/devcluster"},
		"only the command line owns the process; packages end with their context",
	},
	{
		"testing",
		[]string{"redisstore/storetest", "internal/tool", "internal/testkit"},
		[]string{"*"},
		"test machinery does not belong into the binary; storetest and testkit are imported by tests alone",
	},
}

// ban is one import that the floors would allow and the house does not.
type ban struct {
	whom   string   // package of ours
	except []string // who may import it all the same
	tests  bool     // whether tests may
	reason string
}

var bans = []ban{
	{
		"redisstore",
		[]string{"cli", "node"},
		true,
		"users of a store declare the few methods they need; node hands them the Redis one, and cli looks at a store for the lab",
	},
	{
		"redisstore/storetest", nil, true,
		"a store for tests is for tests",
	},
	{
		"internal/tool",
		[]string{"redisstore/storetest", "internal/testkit"},
		true,
		"what tests need is no concern of the product",
	},
	{
		"sfu",
		[]string{"node"},
		true,
		"a media node is a process of its own: everybody else speaks to it through control",
	},
	{
		"signaling",
		[]string{"cli", "node"},
		true,
		"a signaling node is reached by its protocol; what stands above uses signaling/wire and signaling/access",
	},
	{
		"node",
		[]string{"cli"},
		false,
		"a process is started by its command line; everybody else speaks to it over its ports",
	},
	{
		"cli",
		[]string{"."},
		false,
		"the command line is the roof",
	},
	{
		"lab/devcluster",
		[]string{"cli", "lab/e2e", "lab/chaos", "lab/load", "lab/docker"},
		true,
		"production code never supervises processes; a supervised one speaks internal/child",
	},
	{
		"lab/browser",
		[]string{"cli", "lab/chaos", "lab/e2e"},
		true,
		"browsers are for the lab and tests",
	},
	{
		"lab/hosts",
		[]string{"cli", "lab/e2e", "lab/chaos", "lab/docker"},
		true,
		"network namespaces are for the lab",
	},
	{
		"lab/docker",
		[]string{"cli"},
		true,
		"production code knows no container engine",
	},
	{
		"lab/portrait",
		[]string{"cli", "lab/load", "lab/peer", "lab/portrait/record"},
		true,
		"drawn people are for load, demonstrations and tests",
	},
	{
		"lab/peer",
		[]string{"cli", "lab/chaos", "lab/load"},
		true,
		"synthetic peers are for load and tests",
	},
}

// standardOnly are the packages that import nothing but the standard library and
// what stands below them here.
var standardOnly = map[string]string{
	"ring":               "placement is pure arithmetic: any language must be able to compute it from the page that describes it",
	"internal/failpoint": "any package may use it, so it may drag nothing in",
	"internal/child":     "the lab and every node use it, so it may drag nothing of one into the other",
	"pin":                "the order of placements is pure arithmetic",
}

// imports is one import declaration.
type imports struct {
	from string // package of ours: its directory, "." for the root
	test bool   // in a _test.go file
	what string // import path
}

// violations checks every import against the plan.
func violations(all []imports) []string {
	var found []string
	for _, i := range all {
		if _, ok := floorOf(i.from); !ok {
			found = append(found, i.from+" stands on no floor; give it one here and in docs/ARCHITECTURE.md")
			continue
		}
		for _, check := range []func(imports) string{checkFloor, checkTechnology, checkBan, checkStandard} {
			if fault := check(i); fault != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", i.from, i.what, fault))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// floorOf counts from the roof; ok is false for a package that stands nowhere.
func floorOf(pkg string) (floor int, ok bool) {
	floor = slices.IndexFunc(floors, func(f []string) bool { return slices.Contains(f, pkg) })
	return floor, floor >= 0
}

// ours is the import as a package of this module.
func ours(what string) (pkg string, ok bool) {
	if what == module {
		return ".", true
	}
	return strings.CutPrefix(what, module+"/")
}

func checkFloor(i imports) string {
	from, _ := floorOf(i.from)
	pkg, isOurs := ours(i.what)
	if !isOurs || pkg == i.from { // a package's external test imports the package itself
		return ""
	}
	to, ok := floorOf(pkg)
	switch {
	case !ok:
		return fmt.Sprintf("%s stands on no floor; give it one here and in docs/ARCHITECTURE.md", pkg)
	case to <= from:
		return "imports go down only, so that what is below can be understood without what is above"
	}
	return ""
}

// under reports whether an import path is prefix or below it.
func under(what, prefix string) bool { return what == prefix || strings.HasPrefix(what, prefix+"/") }

func checkTechnology(i imports) string {
	for _, t := range technologies {
		if !under(i.what, t.prefix) || slices.Contains(t.users, i.from) {
			continue
		}
		if i.test && (slices.Contains(t.tests, i.from) || slices.Contains(t.tests, "*")) {
			continue
		}
		return t.reason
	}
	return ""
}

func checkBan(i imports) string {
	pkg, ok := ours(i.what)
	if !ok || pkg == i.from {
		return ""
	}
	for _, b := range bans {
		if b.whom == pkg && !slices.Contains(b.except, i.from) && (!i.test || !b.tests) {
			return b.reason
		}
	}
	return ""
}

func checkStandard(i imports) string {
	reason, ok := standardOnly[i.from]
	if !ok || i.test {
		return ""
	}
	_, isOurs := ours(i.what)
	if first, _, _ := strings.Cut(i.what, "/"); !isOurs && strings.Contains(first, ".") {
		return reason
	}
	return ""
}

// importsOf reads the import declarations below root.
func importsOf(t *testing.T, root string) []imports {
	t.Helper()
	var all []imports
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && name != "." && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(file, "go.mod")); err == nil && file != root && entry.IsDir() {
			return filepath.SkipDir // a module of its own
		}
		if entry.IsDir() || filepath.Ext(file) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			what, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			all = append(all, imports{from: path.Dir(filepath.ToSlash(file)), test: strings.HasSuffix(file, "_test.go"), what: what})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImportsGoDownOnly(t *testing.T) {
	all := importsOf(t, ".")
	if len(all) < 100 {
		t.Fatalf("only %d imports were found: the walk is broken", len(all))
	}
	for _, fault := range violations(all) {
		t.Error(fault)
	}
}

// TestTheCheckerSeesViolations: a check that cannot fail is worse than none.
func TestTheCheckerSeesViolations(t *testing.T) {
	tests := []struct {
		i    imports
		want string // a part of the reason; empty when it is allowed
	}{
		{imports{"signaling", false, module + "/failover"}, ""},
		{imports{"failover", false, module + "/signaling"}, "down only"},
		{imports{"failover", true, module + "/signaling"}, "down only"},
		{imports{"sfu/egress", false, module + "/sfu/forward"}, "down only"},
		{imports{"ring", false, module + "/pin"}, "down only"},
		{imports{".", false, module + "/cli"}, ""},
		{imports{"newcomer", false, "fmt"}, "no floor"},
		{imports{"cli", false, module + "/newcomer"}, "no floor"},
		{imports{"cluster", false, "github.com/hashicorp/memberlist"}, ""},
		{imports{"failover", false, "github.com/hashicorp/memberlist"}, "only cluster knows gossip"},
		{imports{"orchestrator", false, "github.com/redis/go-redis/v9"}, "every key and script"},
		{imports{"redisstore", true, "github.com/alicebob/miniredis/v2"}, ""},
		{imports{"redisstore", false, "github.com/alicebob/miniredis/v2"}, "for development and tests"},
		{imports{"signaling", false, "github.com/pion/webrtc/v4"}, "only the media node"},
		{imports{"cli", false, "google.golang.org/grpc/codes"}, "gRPC ends"},
		{imports{"cli", false, "google.golang.org/grpcish"}, ""},
		{imports{"lab/devcluster", false, "os/signal"}, "owns the process"},
		{imports{"lab/e2e", true, "github.com/chromedp/chromedp"}, ""},
		{imports{"lab/peer", false, "github.com/chromedp/chromedp"}, "never the product"},
		{imports{"orchestrator", false, module + "/redisstore"}, "declare the few methods"},
		{imports{"orchestrator", true, module + "/redisstore"}, ""},
		{imports{"signaling", false, module + "/sfu"}, "process of its own"},
		{imports{"node", false, module + "/lab/devcluster"}, "down only"},
		{imports{"lab/devcluster", false, module + "/node"}, "started by its command line"},
		{imports{"sfu", false, "testing"}, "test machinery"},
		{imports{"sfu", true, "testing"}, ""},
		{imports{"ring", false, "golang.org/x/exp/slices"}, "pure arithmetic"},
		{imports{"ring", false, "crypto/sha1"}, ""},
		{imports{"ring", true, "pgregory.net/rapid"}, ""},
	}
	for _, test := range tests {
		got := strings.Join(violations([]imports{test.i}), "\n")
		if test.want == "" && got != "" {
			t.Errorf("%+v is refused: %s", test.i, got)
		}
		if test.want != "" && !strings.Contains(got, test.want) {
			t.Errorf("%+v: said %q, want %q", test.i, got, test.want)
		}
	}
}

// TestTheBinaryOfNodesLinksNothingOfTheLab: built with the tag node, the binary has no package of the lab, no browser driver, no embedded
// store and no test machinery, through whatever packages. Without the tag it has all but the last, which shows that the test sees them.
func TestTheBinaryOfNodesLinksNothingOfTheLab(t *testing.T) {
	linked := func(arguments ...string) []string {
		t.Helper()
		list, err := exec.Command("go", append([]string{"list", "-deps"}, append(arguments, ".")...)...).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		return strings.Fields(string(list))
	}
	lab := []string{"github.com/chromedp", "github.com/alicebob/miniredis", module + "/lab", "charm.land", module + "/top"}
	has := func(packages []string, prefix string) bool {
		return slices.ContainsFunc(packages, func(p string) bool { return under(p, prefix) })
	}
	node, whole := linked("-tags", "node"), linked()
	for _, prefix := range append(lab, "testing") {
		if has(node, prefix) {
			t.Errorf("the binary of nodes links %s", prefix)
		}
	}
	for _, prefix := range append(lab, module+"/lab/devcluster", module+"/lab/chaos", module+"/lab/browser", module+"/sfu") {
		if !has(whole, prefix) {
			t.Errorf("%s is not found where it is: the test sees nothing", prefix)
		}
	}
	for _, prefix := range []string{module + "/sfu", module + "/signaling", module + "/balancer"} {
		if !has(node, prefix) {
			t.Errorf("the binary of nodes lacks %s", prefix)
		}
	}
}
