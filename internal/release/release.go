package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/build"
)

// sums is the file with the checksums of all others, in the form of sha256sum.
const sums = "SHA256SUMS"

// target is one binary of a release.
type target struct {
	arch string // as GOARCH has it
	node bool   // without the lab, as nodes run it
}

func allTargets() []target {
	return []target{{"amd64", false}, {"amd64", true}, {"arm64", false}, {"arm64", true}}
}

// program is the first part of the names of the target's files.
func (t target) program() string {
	if t.node {
		return "holdfast-node"
	}
	return "holdfast"
}

// release is one run of this command.
type release struct {
	source  string // the root of the checkout
	out     string
	version string // empty for the files of a commit that is no release
	dirty   bool   // whether changes without a commit are allowed
	image   string // the name of the images, without a tag
	targets []target
}

// built is a binary that the Go tool has built, with what it stamped into it.
type built struct {
	target
	content []byte
	info    *debug.BuildInfo
	commit  string
	at      time.Time // of the commit
	changed bool      // the checkout had changes that no commit has
}

// run builds everything and returns the names of the files, sorted. It writes into out only after all binaries are built.
func (r *release) run(ctx context.Context) ([]string, error) {
	if err := r.mayBegin(ctx); err != nil {
		return nil, err
	}
	licences, legal, err := readLegal(r.source)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "holdfast-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	files := map[string][]byte{}
	for _, t := range r.targets {
		b, err := r.build(ctx, t, filepath.Join(work, t.program()+"-"+t.arch))
		if err != nil {
			return nil, err
		}
		if err := r.pack(b, licences, legal, files); err != nil {
			return nil, err
		}
	}
	files[sums] = checksums(files)
	return write(r.out, files)
}

// mayBegin refuses what would not become a release that somebody else can build again.
func (r *release) mayBegin(ctx context.Context) error {
	if r.version != "" && r.version != build.Version {
		return fmt.Errorf("--version: this checkout is version %s, not %s: change internal/build and CHANGELOG.md, and commit that", build.Version, r.version)
	}
	if r.version != "" && r.dirty {
		return errors.New("--dirty: a release has no changes without a commit; leave --version out")
	}
	if in, err := os.ReadDir(r.out); err == nil && len(in) > 0 {
		return fmt.Errorf("--out: %s is not empty", r.out)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--out: %w", err)
	}
	status := exec.CommandContext(ctx, "git", "status", "--porcelain")
	status.Dir = r.source
	said, err := status.Output()
	if err != nil {
		return fmt.Errorf("ask git for the state of the checkout: %w", err)
	}
	if len(said) > 0 && !r.dirty {
		return fmt.Errorf("the checkout has changes that no commit has; commit them, or give --dirty:\n%.1000s", said)
	}
	return nil
}

// build runs the Go tool, with nothing of the machine's that would change the binary.
func (r *release) build(ctx context.Context, t target, path string) (built, error) {
	args := []string{"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", path}
	if t.node {
		args = append(args, "-tags=node")
	}
	command := exec.CommandContext(ctx, "go", append(args, ".")...) //nolint:gosec // constants, and a path made here
	command.Dir = r.source
	// An empty GOFLAGS would be read as none, and a setting of "go env -w" would come in its place.
	command.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+t.arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-trimpath", "GOWORK=off", "GOEXPERIMENT=", "GODEBUG=")
	if said, err := command.CombinedOutput(); err != nil {
		return built{}, fmt.Errorf("build %s for %s: %w\n%.4000s", t.program(), t.arch, err, said)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return built{}, err
	}
	return stamped(t, content)
}

// stamped reads what the Go tool wrote into the binary.
func stamped(t target, content []byte) (built, error) {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return built{}, fmt.Errorf("read what is stamped into %s: %w", t.program(), err)
	}
	b := built{target: t, content: content, info: info}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.commit = s.Value
		case "vcs.time":
			b.at, err = time.Parse(time.RFC3339, s.Value)
		case "vcs.modified":
			b.changed = s.Value == "true"
		}
	}
	if err != nil {
		return built{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	if b.commit == "" || b.at.IsZero() {
		return built{}, errors.New("the Go tool stamped no commit into the binary: build in a clone of the repository, for it stamps none in a linked worktree")
	}
	return b, nil
}

// named is the last part of the names of files and the tag of images: the version, and the commit where that is no release.
func (r *release) named(b built) string {
	if r.version != "" {
		return r.version
	}
	named := build.Version + "-" + b.commit[:min(len(b.commit), 8)]
	if b.changed {
		named += "-modified"
	}
	return named
}

// pack adds the files of one binary: its archive and its bill of materials, and the image where nodes run it.
func (r *release) pack(b built, licences licences, legal []entry, files map[string][]byte) error {
	named := r.named(b)
	base := b.program() + "-" + named + "-linux-" + b.arch
	archive, err := archive(b.at, base, append([]entry{{"holdfast", 0o755, b.content}}, legal...))
	if err != nil {
		return err
	}
	files[base+".tar.gz"] = archive
	if files[base+".cdx.json"], err = bill(b, named, licences); err != nil {
		return err
	}
	if b.node {
		files["holdfast-image-"+named+"-linux-"+b.arch+".tar"], err = image(b, r.image, named, legal)
	}
	return err
}

// checksums are the lines that sha256sum --check reads, sorted by name.
func checksums(files map[string][]byte) []byte {
	var lines []string
	for name, content := range files {
		lines = append(lines, name+"\n"+hexSum(content))
	}
	slices.Sort(lines)
	var text bytes.Buffer
	for _, line := range lines {
		name, sum, _ := strings.Cut(line, "\n")
		fmt.Fprintf(&text, "%s  %s\n", sum, name)
	}
	return text.Bytes()
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// write makes the directory and returns the paths, sorted.
func write(out string, files map[string][]byte) ([]string, error) {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	var paths []string
	for name, content := range files {
		path := filepath.Join(out, name)
		if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // everybody may read a release
			return nil, err
		}
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths, nil
}
