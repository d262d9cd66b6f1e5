package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/node"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// keysCommand takes one step of a rotation at a time (docs/KEYS.md).
type keysCommand struct {
	New  keysNewCommand  `cmd:"" help:"Write a new key behind those of the file, or a new file: it is accepted, and not used yet."`
	Use  keysUseCommand  `cmd:"" help:"Put the last cluster key first: it is used, and the one before is still accepted."`
	Drop keysDropCommand `cmd:"" help:"Take a key out that is not used any more."`
	Show keysShowCommand `cmd:"" help:"Name the keys of a file without telling them, as nodes do in their logs."`
}

type keysFile struct {
	File string `arg:"" help:"A file for --cluster-key-file, or with --api one for --api-keys-file."`
	API  string `placeholder:"NAME" help:"The API key that is meant; without it the file has cluster keys."`
}

type keysNewCommand struct{ keysFile }

// Run writes a key of 256 bits behind the others.
func (c *keysNewCommand) Run(s streams) error {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never an error (Go 1.24)
	line := hex.EncodeToString(secret[:])
	if c.API != "" {
		line = c.API + ":" + line
	}
	return c.change(s, func(lines []string) ([]string, error) { return append(lines, line), nil })
}

type keysUseCommand struct{ keysFile }

func (c *keysUseCommand) Run(s streams) error {
	if c.API != "" {
		return node.Faults(errors.New("--api: every API key of the file is accepted; the one that is used is the application's choice"))
	}
	return c.change(s, func(lines []string) ([]string, error) {
		if len(lines) != 2 {
			return nil, fmt.Errorf("%s has %d keys, want 2: make one with '%s keys new' first, and wait until every node has read it", c.File, len(lines), invocation.Name())
		}
		return []string{lines[1], lines[0]}, nil
	})
}

type keysDropCommand struct{ keysFile }

// Run takes out the second cluster key, or the API key of that name.
func (c *keysDropCommand) Run(s streams) error {
	return c.change(s, func(lines []string) ([]string, error) {
		at := 1
		if c.API != "" {
			at = slices.IndexFunc(lines, func(line string) bool { name, _, _ := strings.Cut(line, ":"); return strings.TrimSpace(name) == c.API })
		}
		if at < 0 || at >= len(lines) || len(lines) == 1 {
			return nil, fmt.Errorf("%s has no such key beside the one that stays", c.File)
		}
		return slices.Delete(lines, at, at+1), nil
	})
}

type keysShowCommand struct{ keysFile }

// Run names the keys.
func (c *keysShowCommand) Run(s streams) error {
	text, err := node.ReadKeyFile(c.File)
	if err != nil {
		return err
	}
	return c.show(s, text)
}

// change replaces the file's lines by others that are good keys, in one step, and names them.
func (c *keysFile) change(s streams, edit func(lines []string) ([]string, error)) error {
	// A link would be replaced, not followed, and the new file would get the rights of what the link names.
	if info, err := os.Lstat(c.File); err == nil && !info.Mode().IsRegular() {
		return node.Faults(fmt.Errorf("%s is no regular file: name the file itself, not a symbolic link to it", c.File))
	}
	text, err := node.ReadKeyFile(c.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines, err := edit(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || c.API != "" && r == ',' }))
	if err != nil {
		return node.Faults(err)
	}
	text = strings.Join(lines, "\n") + "\n"
	if _, err := c.marks(text); err != nil {
		return node.Faults(err)
	}
	if err := replaceFile(c.File, text); err != nil {
		return err
	}
	return c.show(s, text)
}

func (c *keysFile) show(s streams, text string) error {
	marks, err := c.marks(text)
	if err != nil {
		return node.Faults(err)
	}
	for i, mark := range marks {
		if i == 0 && c.API == "" {
			mark += " (used)"
		}
		fmt.Fprintln(s.out, mark)
	}
	return nil
}

func (c *keysFile) marks(text string) ([]string, error) {
	if c.API != "" {
		keys, err := access.ParseKeyring(text)
		if err != nil {
			return nil, err
		}
		return keys.Keys(), nil
	}
	key, err := control.ParseClusterKey(text)
	return key.Marks(), err
}

// replaceFile never shows a reader half a text.
func replaceFile(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".keys-*") // It is made for this user alone.
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if old, missing := os.Stat(path); err == nil && missing == nil {
		err = likeOld(file.Name(), old)
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(file.Name()))
	}
	return nil
}

// likeOld keeps who may read the file. Only root gives files away; others get the file as theirs.
func likeOld(path string, old fs.FileInfo) error {
	if owner, ok := old.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return os.Chmod(path, old.Mode().Perm())
}
