package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"path"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The media types of the OCI Image Format Specification 1.1.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// rootsFile is where Go looks for the certificates of authorities.
const rootsFile = "etc/ssl/certs/ca-certificates.crt"

// descriptor names a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	Created      time.Time `json:"created"`
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       runConfig `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
	History      []history `json:"history"`
}

// runConfig says what Dockerfile says.
type runConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Entrypoint   []string
	Labels       map[string]string
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

type history struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

// dockerManifest is manifest.json, by which docker load finds its way in an archive.
type dockerManifest struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func runConfigOf(b built, named string) runConfig {
	ports := map[string]struct{}{}
	for _, port := range []string{"7880/tcp", "7946/tcp", "7946/udp", "7981/tcp", "7983/tcp", "7982/udp", "7982/tcp"} {
		ports[port] = struct{}{}
	}
	return runConfig{
		// A number, because an empty image knows no names.
		User: "65534:65534", ExposedPorts: ports, Entrypoint: []string{"/holdfast"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "holdfast",
			"org.opencontainers.image.version":  named,
			"org.opencontainers.image.revision": b.commit,
			"org.opencontainers.image.created":  b.at.UTC().Format(time.RFC3339),
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
}

// blobs are the contents of an OCI image layout, in the order in which they were added.
type blobs []entry

// add stores the content under its digest.
func (l *blobs) add(mediaType string, content []byte) descriptor {
	sum := hexSum(content)
	*l = append(*l, entry{path.Join("blobs/sha256", sum), 0o644, content})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + sum, Size: len(content)}
}

// image is a tar archive that docker load and podman load read, and that is an OCI image layout for other tools. It contains
// what Dockerfile puts into an image: the binary, the certificates of public authorities, and the licences.
func image(b built, name, tag string, legal []entry) ([]byte, error) {
	inside := append([]entry{{rootsFile, 0o644, roots()}, {"holdfast", 0o755, b.content}}, legal...)
	layer, err := packTar(b.at, inside)
	if err != nil {
		return nil, err
	}
	small, err := compress(layer)
	if err != nil {
		return nil, err
	}
	var stored blobs
	layers := []descriptor{stored.add(typeLayer, small)}
	config, err := json.Marshal(imageConfig{
		Created: b.at.UTC(), Architecture: b.arch, OS: "linux", Config: runConfigOf(b, tag),
		RootFS:  rootFS{"layers", []string{"sha256:" + hexSum(layer)}},
		History: []history{{b.at.UTC(), "go run ./internal/release"}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of an image: %w", err)
	}
	configured := stored.add(typeConfig, config)
	manifested, err := json.Marshal(manifest{2, typeManifest, configured, layers})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest of an image: %w", err)
	}
	listed := stored.add(typeManifest, manifested)
	listed.Platform = &platform{b.arch, "linux"}
	listed.Annotations = map[string]string{
		"org.opencontainers.image.ref.name": tag,
		"io.containerd.image.name":          "docker.io/library/" + name + ":" + tag,
	}
	indexed, err := json.Marshal(index{2, typeIndex, []descriptor{listed}})
	if err != nil {
		return nil, fmt.Errorf("encode the index of an image: %w", err)
	}
	docker, err := json.Marshal([]dockerManifest{{blobOf(configured), []string{name + ":" + tag}, []string{blobOf(layers[0])}}})
	if err != nil {
		return nil, fmt.Errorf("encode the manifest for docker load: %w", err)
	}
	return packTar(b.at, append(stored,
		entry{"index.json", 0o644, indexed}, entry{"manifest.json", 0o644, docker},
		entry{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)}))
}

func blobOf(d descriptor) string { return path.Join("blobs/sha256", d.Digest[len("sha256:"):]) }

// roots are the public authorities that Mozilla trusts without conditions, in PEM, of the module that go.mod names: those of the
// machine would make each machine's image another one. A condition cannot be written in PEM.
func roots() []byte {
	out := bytes.NewBufferString("# Mozilla's trusted authorities, of the Go module golang.org/x/crypto/x509roots/fallback.\n")
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			// A buffer takes everything.
			_ = pem.Encode(out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return out.Bytes()
}
