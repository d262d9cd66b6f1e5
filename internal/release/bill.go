package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// licences are SPDX identifiers by "path version" of a module or of a directory in it.
type licences map[string][]string

// noticeModule is a line of NOTICE that names a module, or a directory in it, and a version.
var noticeModule = regexp.MustCompile(`(?m)^ {2}(\S+\.\S+) (v\d+\.\d+\.\d+\S*)$`)

// licencesIn reads NOTICE, which a test of the root package writes: groups of modules with the same text, headed by its name.
func licencesIn(notice string) licences {
	found := licences{}
	for _, group := range strings.Split(notice, strings.Repeat("=", 80)+"\n")[1:] {
		name, rest, _ := strings.Cut(group, "\n")
		if strings.HasPrefix(name, "Notice of ") {
			continue
		}
		for _, m := range noticeModule.FindAllStringSubmatch(rest, -1) {
			key := m[1] + " " + m[2]
			if !slices.Contains(found[key], name) {
				found[key] = append(found[key], name)
			}
		}
	}
	return found
}

// of returns the licences of a module and of the directories in it, sorted.
func (l licences) of(m *debug.Module) (names []string) {
	for key, some := range l {
		where, version, _ := strings.Cut(key, " ")
		if version == m.Version && (where == m.Path || strings.HasPrefix(where, m.Path+"/")) {
			names = append(names, some...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// bill is the bill of materials of a binary: CycloneDX 1.6 in JSON, of what the Go tool stamped into it. Time and serial number are the
// commit's and the binary's, so that they are the same in each build.
func bill(b built, named string, licences licences) ([]byte, error) {
	own := component(&b.info.Main, []string{"Apache-2.0"})
	own.Type, own.Name, own.Version = cyclonedx.ComponentTypeApplication, b.program(), named
	own.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hexSum(b.content)}}
	own.Properties = &[]cyclonedx.Property{}
	for _, s := range b.info.Settings {
		*own.Properties = append(*own.Properties, cyclonedx.Property{Name: "holdfast:build:" + s.Key, Value: s.Value})
	}
	components := []cyclonedx.Component{standardLibrary(b.info.GoVersion)}
	for _, m := range b.info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		names := licences.of(m)
		if len(names) == 0 {
			return nil, fmt.Errorf("NOTICE has no licence of %s %s: run go test . -run Notice -update", m.Path, m.Version)
		}
		components = append(components, component(m, names))
	}
	var uses []string
	dependencies := []cyclonedx.Dependency{{Ref: own.BOMRef, Dependencies: &uses}}
	for _, c := range components {
		uses = append(uses, c.BOMRef)
		dependencies = append(dependencies, cyclonedx.Dependency{Ref: c.BOMRef})
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serial(b.content)
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp:  b.at.UTC().Format(time.RFC3339),
		Lifecycles: &[]cyclonedx.Lifecycle{{Phase: cyclonedx.LifecyclePhaseBuild}},
		Component:  &own,
	}
	bom.Components, bom.Dependencies = &components, &dependencies
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encode the bill of materials of %s: %w", b.program(), err)
	}
	return out.Bytes(), nil
}

// component describes a module. Its sum is not a hash of one file, so it is a property and no hash.
func component(m *debug.Module, names []string) cyclonedx.Component {
	c := cyclonedx.Component{
		BOMRef: packageURL(m.Path, m.Version), Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		PackageURL: packageURL(m.Path, m.Version), Licenses: &cyclonedx.Licenses{},
	}
	for _, name := range names {
		*c.Licenses = append(*c.Licenses, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: name}})
	}
	if m.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "holdfast:go.sum", Value: m.Sum}}
	}
	return c
}

// standardLibrary has the name by which scanners look up Go's advisories.
func standardLibrary(goVersion string) cyclonedx.Component {
	return component(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(goVersion, "go")}, []string{"BSD-3-Clause"})
}

// packageURL has the form of https://github.com/package-url/purl-spec for Go.
func packageURL(path, version string) string {
	return "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// serial makes a UUID of version 8 (RFC 9562) from the binary.
func serial(content []byte) string {
	sum := sha256.Sum256(content)
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
