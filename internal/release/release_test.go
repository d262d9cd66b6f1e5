package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/build"
	"github.com/holdfast-rtc/holdfast/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// command returns what a program wrote.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, said)
	}
	return string(said)
}

// cloned is a checkout of this repository's last commit in a directory of its own.
func cloned(t *testing.T, name string) string {
	t.Helper()
	git := tool.Find(t, "git")
	dir := filepath.Join(t.TempDir(), name)
	command(t, "../..", git, "clone", "-q", "--no-checkout", ".", dir)
	command(t, dir, git, "checkout", "-q", "--detach", "HEAD")
	return dir
}

// filesIn reads a directory without directories in it.
func filesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if files[one.Name()], err = os.ReadFile(filepath.Join(dir, one.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// untar returns the files of an archive, and checks that each has the time and the owner that all have.
func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	var first *tar.Header
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = header
		}
		if !header.ModTime.Equal(first.ModTime) || header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s is of %v and of user %d %q", header.Name, header.ModTime, header.Uid, header.Uname)
		}
		if header.Typeflag == tar.TypeReg {
			if files[header.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func gunzip(t *testing.T, content []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// one returns the only file whose name ends so.
func one(t *testing.T, files map[string][]byte, end string) (name string, content []byte) {
	t.Helper()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return !strings.HasSuffix(name, end) })
	if len(names) != 1 {
		t.Fatalf("files that end in %s: %q", end, names)
	}
	return names[0], files[names[0]]
}

// TestTwoReleasesAreTheSame builds the binary of nodes in two directories, the second time with variables that must not matter, and looks at
// the files. It takes one architecture: the others differ by one variable.
func TestTwoReleasesAreTheSame(t *testing.T) {
	var releases []map[string][]byte
	for _, name := range []string{"a", "another-directory"} {
		source := cloned(t, name)
		r := release{source: source, out: filepath.Join(t.TempDir(), "out"), image: "holdfast-release-test", targets: []target{{runtime.GOARCH, true}}}
		if len(releases) > 0 {
			t.Setenv("GOFLAGS", "-tags=lab -ldflags=-X=main.x=y")
			t.Setenv("GOAMD64", "v2")
			t.Setenv("CGO_ENABLED", "1")
		}
		if _, err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		releases = append(releases, filesIn(t, r.out))
		if _, err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), "is not empty") {
			t.Errorf("a second release into the same directory: %v", err)
		}
	}
	if !slices.Equal(slices.Sorted(maps.Keys(releases[0])), slices.Sorted(maps.Keys(releases[1]))) {
		t.Fatalf("files %q and %q", slices.Sorted(maps.Keys(releases[0])), slices.Sorted(maps.Keys(releases[1])))
	}
	for name, content := range releases[0] {
		if !bytes.Equal(content, releases[1][name]) {
			t.Errorf("%s is another one in another directory", name)
		}
	}
	files := releases[0]
	_, archive := one(t, files, ".tar.gz")
	packed := untar(t, gunzip(t, archive))
	_, binary := one(t, packed, "/holdfast")
	t.Run("checksums", func(t *testing.T) { checkSums(t, files) })
	t.Run("archive", func(t *testing.T) {
		if len(packed) != 3 || !slices.ContainsFunc(slices.Collect(maps.Keys(packed)), func(name string) bool { return strings.HasSuffix(name, "/NOTICE") }) {
			t.Errorf("the archive has %q", slices.Sorted(maps.Keys(packed)))
		}
	})
	t.Run("bill of materials", func(t *testing.T) { _, content := one(t, files, ".cdx.json"); checkBill(t, content, binary) })
	t.Run("image", func(t *testing.T) { name, content := one(t, files, ".tar"); checkImage(t, name, content, binary) })
}

// checkSums does what sha256sum --check does.
func checkSums(t *testing.T, files map[string][]byte) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(files[sums])), "\n")
	if len(lines) != len(files)-1 {
		t.Errorf("%d checksums of %d files", len(lines), len(files)-1)
	}
	for _, line := range lines {
		if sum, name, ok := strings.Cut(line, "  "); !ok || files[name] == nil || hexSum(files[name]) != sum {
			t.Errorf("the line %q is wrong", line)
		}
	}
}

// checkBill compares the bill of materials with what is stamped into the binary.
func checkBill(t *testing.T, content, binary []byte) {
	t.Helper()
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		t.Fatal(err)
	}
	bom := cyclonedx.NewBOM()
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(content), cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cyclonedx.SpecVersion1_6 || (*bom.Metadata.Component.Hashes)[0].Value != hexSum(binary) {
		t.Errorf("version %s of the form, of the binary %+v", bom.SpecVersion, bom.Metadata.Component.Hashes)
	}
	want := []string{"stdlib " + strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range info.Deps {
		want = append(want, m.Path+" "+m.Version)
	}
	var got []string
	for _, c := range *bom.Components {
		got = append(got, c.Name+" "+c.Version)
		for _, l := range *c.Licenses {
			if l.License.ID == "" || c.PackageURL == "" {
				t.Errorf("%s has licence %+v and the address %q", c.Name, l.License, c.PackageURL)
			}
		}
	}
	if !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("the bill lists %q, want %q", got, want)
	}
	if uses := *(*bom.Dependencies)[0].Dependencies; len(uses) != len(want) {
		t.Errorf("the binary depends on %d modules, want %d", len(uses), len(want))
	}
}

// checkImage follows the digests from the index to the binary, and runs the image where there is an engine.
func checkImage(t *testing.T, name string, content, binary []byte) {
	t.Helper()
	inside := untar(t, content)
	blob := func(d descriptor, into any) []byte {
		t.Helper()
		found := inside[blobOf(d)]
		if hexSum(found) != strings.TrimPrefix(d.Digest, "sha256:") || len(found) != d.Size {
			t.Fatalf("no blob %+v", d)
		}
		if into != nil {
			if err := json.Unmarshal(found, into); err != nil {
				t.Fatal(err)
			}
		}
		return found
	}
	var top index
	var listed manifest
	var config imageConfig
	if err := json.Unmarshal(inside["index.json"], &top); err != nil {
		t.Fatal(err)
	}
	blob(top.Manifests[0], &listed)
	blob(listed.Config, &config)
	layer := gunzip(t, blob(listed.Layers[0], nil))
	if config.RootFS.DiffIDs[0] != "sha256:"+hexSum(layer) {
		t.Errorf("the layer is not %s", config.RootFS.DiffIDs[0])
	}
	root := untar(t, layer)
	if !bytes.Equal(root["holdfast"], binary) || len(root["NOTICE"]) == 0 || len(root["LICENSE"]) == 0 {
		t.Errorf("the image has %q", slices.Sorted(maps.Keys(root)))
	}
	authorities := 0
	for rest := root[rootsFile]; ; authorities++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Error(err)
		}
	}
	if authorities < 50 {
		t.Errorf("the image trusts %d authorities", authorities)
	}
	if said, err := exec.CommandContext(t.Context(), "docker", "info").CombinedOutput(); err != nil {
		t.Skipf("there is no container engine here: %v: %.200s", err, said)
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	tag := "holdfast-release-test:" + config.Config.Labels["org.opencontainers.image.version"]
	if said := command(t, "", "docker", "load", "-i", file); !strings.Contains(said, tag) {
		t.Errorf("the engine loaded %s, want %s", said, tag)
	}
	defer command(t, "", "docker", "rmi", "-f", tag)
	said := command(t, "", "docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL", tag, "version")
	if commit := config.Config.Labels["org.opencontainers.image.revision"]; !strings.Contains(said, commit) || !strings.Contains(said, build.Version) {
		t.Errorf("the image says %q, want version %s of %s", said, build.Version, commit)
	}
}

// TestTheImageIsThatOfDockerfile: people who build from the Dockerfile get the same user, ports and files.
func TestTheImageIsThatOfDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, _ := strings.Cut(string(text), "FROM scratch")
	says := func(instruction string) string {
		return string(regexp.MustCompile(`(?m)^` + instruction + ` (.*)$`).FindSubmatch([]byte(last))[1])
	}
	config := runConfigOf(built{}, "x")
	ports := strings.Fields(says("EXPOSE"))
	slices.Sort(ports)
	if !slices.Equal(ports, slices.Sorted(maps.Keys(config.ExposedPorts))) {
		t.Errorf("ports %q, and in the image %q", ports, slices.Sorted(maps.Keys(config.ExposedPorts)))
	}
	if says("USER") != config.User || says("ENTRYPOINT") != fmt.Sprintf("[%q]", config.Entrypoint[0]) || !strings.Contains(last, "/"+rootsFile[:len("etc/ssl/certs")]) {
		t.Errorf("Dockerfile is another image than %+v", config)
	}
}

// TestWhatIsNoRelease needs no build: what is refused is refused before.
func TestWhatIsNoRelease(t *testing.T) {
	source := cloned(t, "changed")
	if err := os.WriteFile(filepath.Join(source, "README.md"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]release{
		"changes that no commit has":  {},
		"is version " + build.Version: {version: "99.0.0"},
		"a release has no changes":    {version: build.Version, dirty: true},
		"is not empty":                {out: source, dirty: true},
	} {
		r.source = source
		if r.out == "" {
			r.out = filepath.Join(t.TempDir(), "out")
		}
		if _, err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (&release{source: source, dirty: true, out: filepath.Join(source, "none")}).mayBegin(t.Context()); err != nil {
		t.Errorf("--dirty is refused: %v", err)
	}
}

func TestNamesOfFiles(t *testing.T) {
	b := built{commit: "65fd839c9f29dc69", changed: true}
	for _, c := range []struct {
		r    release
		b    built
		want string
	}{
		{release{version: "1.2.3"}, built{commit: b.commit}, "1.2.3"},
		{release{}, built{commit: b.commit}, build.Version + "-65fd839c"},
		{release{}, b, build.Version + "-65fd839c-modified"},
	} {
		if got := c.r.named(c.b); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	if got := packageURL("github.com/Azure/go", "v2.0.0+incompatible"); got != "pkg:golang/github.com/azure/go@v2.0.0%2Bincompatible" {
		t.Error(got)
	}
}
