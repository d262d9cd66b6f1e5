package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

const (
	keyFileBytes = 64 << 10
	// keyFileEvery: bytes are compared, not dates, because mounted secrets are swapped by directory.
	keyFileEvery = 2 * time.Second
)

// ReadKeyFile returns the whole file, which is at most keyFileBytes long.
func ReadKeyFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, keyFileBytes+1))
	if err == nil && len(text) > keyFileBytes {
		err = errors.New("it is too long for a file of keys")
	}
	return string(text), err
}

// watchKeyFile applies the file whenever it changes. What cannot be read or applied is logged once, and the keys in use
// stay.
func watchKeyFile(ctx context.Context, path, inUse string, log *slog.Logger, apply func(text string) (marks []string, err error)) error {
	if path == "" {
		return nil
	}
	return reread(ctx, log.With("file", path), "keys not replaced: those in use stay", func() error {
		text, err := ReadKeyFile(path)
		if err != nil || text == inUse {
			return err
		}
		marks, err := apply(text)
		if err != nil {
			return err
		}
		inUse = text
		log.Info("keys replaced", "file", path, "keys", marks)
		return nil
	})
}

// reread calls read every few seconds until ctx ends. A fault is logged once for as long as it stays the same.
func reread(ctx context.Context, log *slog.Logger, refused string, read func() error) error {
	said := ""
	backoff.Every(ctx, keyFileEvery, func() {
		err := read()
		switch {
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error()
			log.Error(refused, "error", err)
		}
	})
	return nil
}

// watchClusterKey calls used when another key is used from now on.
func (f gossipFlags) watchClusterKey(ctx context.Context, key control.ClusterKey, gossip *cluster.Cluster, log *slog.Logger, used func()) error {
	return watchKeyFile(ctx, f.ClusterKeyFile, f.keyText, log, func(text string) ([]string, error) {
		former := key.Marks()
		if err := key.Replace(text); err != nil {
			return nil, err
		}
		if marks := key.Marks(); marks[0] != former[0] {
			used()
		}
		return key.Marks(), gossip.SetKeys(key.GossipKeys())
	})
}

func (f KeyringConfig) watchKeyring(ctx context.Context, keys *access.Keyring, log *slog.Logger) error {
	return watchKeyFile(ctx, f.APIKeysFile, f.keyText, log, func(text string) ([]string, error) {
		err := keys.Replace(text)
		return keys.Keys(), err
	})
}
