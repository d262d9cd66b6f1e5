package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

const (
	// keyFileBytes is far more than keys need.
	keyFileBytes = 64 << 10
	// keyFileEvery is how often a file of keys is read again. Its bytes are compared, not its date: where secrets are mounted,
	// directories are swapped.
	keyFileEvery = 2 * time.Second
)

// readKeyFile returns what a file of keys says.
func readKeyFile(path string) (string, error) {
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

// watchKeyFile applies what the file says whenever that changes, until ctx ends. What cannot be read or applied is logged
// once, and the keys that are in use stay.
func watchKeyFile(ctx context.Context, path, inUse string, log *slog.Logger, apply func(text string) (marks []string, err error)) error {
	if path == "" {
		return nil
	}
	tick := time.NewTicker(keyFileEvery)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		text, err := readKeyFile(path)
		if err == nil && text == inUse {
			said = ""
			continue
		}
		var marks []string
		if err == nil {
			marks, err = apply(text)
		}
		switch {
		case err == nil:
			inUse, said = text, ""
			log.Info("keys replaced", "file", path, "keys", marks)
		case err.Error() != said:
			said = err.Error()
			log.Error("keys not replaced: those in use stay", "file", path, "error", err)
		}
	}
}

// watchClusterKey keeps the cluster key of a node, and its gossip, what the file of --cluster-key-file says.
func (f gossipFlags) watchClusterKey(ctx context.Context, key control.ClusterKey, gossip *cluster.Cluster, log *slog.Logger) error {
	return watchKeyFile(ctx, f.ClusterKeyFile, f.keyText, log, func(text string) ([]string, error) {
		if err := key.Replace(text); err != nil {
			return nil, err
		}
		return key.Marks(), gossip.SetKeys(key.GossipKeys())
	})
}

// watchKeyring keeps a keyring what the file of --api-keys-file says.
func (f keyFlags) watchKeyring(ctx context.Context, keys *access.Keyring, log *slog.Logger) error {
	return watchKeyFile(ctx, f.APIKeysFile, f.keyText, log, func(text string) ([]string, error) {
		err := keys.Replace(text)
		return keys.Keys(), err
	})
}

// either is what a flag says, or, if that is given, a file.
func either(flag, text, path string) (string, error) {
	if path == "" {
		return text, nil
	}
	fromFile, err := readKeyFile(path)
	if err != nil {
		return "", fmt.Errorf("--%s-file: %w", flag, err)
	}
	return fromFile, nil
}
