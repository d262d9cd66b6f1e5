package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// entry is a file of an archive or of an image's layer.
type entry struct {
	name    string // with slashes, without one in front
	mode    int64
	content []byte
}

// packTar writes the entries and the directories above them, all with one time and of root, so that the bytes depend on nothing else.
func packTar(at time.Time, entries []entry) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := []string{"."}
	for _, e := range entries {
		for _, dir := range above(e.name) {
			if slices.Contains(made, dir) {
				continue
			}
			made = append(made, dir)
			header := &tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR}
			if err := w.WriteHeader(header); err != nil {
				return nil, fmt.Errorf("archive %s: %w", dir, err)
			}
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR}
		err := w.WriteHeader(header)
		if err == nil {
			_, err = w.Write(e.content)
		}
		if err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("end an archive: %w", err)
	}
	return out.Bytes(), nil
}

// above lists the directories of a path, the outermost first.
func above(name string) (dirs []string) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// compress writes a gzip header without a name and a time.
func compress(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(content)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return out.Bytes(), nil
}

// archive is a .tar.gz that unpacks into one directory.
func archive(at time.Time, dir string, entries []entry) ([]byte, error) {
	inside := slices.Clone(entries)
	for i := range inside {
		inside[i].name = path.Join(dir, inside[i].name)
	}
	content, err := packTar(at, inside)
	if err != nil {
		return nil, err
	}
	return compress(content)
}

// readLegal reads the texts that go with each binary, and which licence each module has.
func readLegal(source string) (licences, []entry, error) {
	var legal []entry
	for _, name := range []string{"LICENSE", "NOTICE"} {
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return nil, nil, err
		}
		legal = append(legal, entry{name, 0o644, content})
	}
	return licencesIn(string(legal[1].content)), legal, nil
}
