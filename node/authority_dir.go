package node

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/crypto/acme/autocert"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
)

// oneAsks lets one process at a time ask the authority about a name: two that share the directory would overwrite each other's
// answers to the check, and authorities allow few certificates for one name.
type oneAsks struct {
	autocert.DirCache
	a *authority
}

const (
	// askingStale is longer than autocert's own limit of a request.
	askingStale = 10 * time.Minute
	askingRetry = 2 * time.Second
)

var errOtherAsks = errors.New("another process that shares the directory asks for it")

// Get is called before autocert asks for a certificate, which it does until ctx ends. While another process asks, a node without a
// certificate gets errOtherAsks, and one that renews waits.
func (c oneAsks) Get(ctx context.Context, name string) ([]byte, error) {
	current := c.a.names[name]
	// A name that is no host of ours is that of a token or of the account.
	if current == nil {
		return c.DirCache.Get(ctx, name)
	}
	for first := current.Load() == nil; ; {
		data, err := c.DirCache.Get(ctx, name)
		if err != nil && !errors.Is(err, autocert.ErrCacheMiss) {
			return nil, err
		}
		// A node without a certificate in use takes one that is due: its renewal runs in the background.
		if valid, due := certificateIn(data, time.Now()); valid && (first || !due) {
			return data, nil
		}
		release, locked := c.a.alone(name)
		switch {
		case locked == nil:
			context.AfterFunc(ctx, release)
			// Another process may have put a certificate there since the last read.
			return c.DirCache.Get(ctx, name)
		case first || !errors.Is(locked, errOtherAsks):
			return nil, locked
		case !backoff.Sleep(ctx, askingRetry):
			return nil, ctx.Err()
		}
	}
}

// certificateIn reports whether the certificate is valid, and whether autocert would renew it: in its last third.
func certificateIn(file []byte, now time.Time) (valid, due bool) {
	pair, err := tls.X509KeyPair(file, file)
	if err != nil || now.Before(pair.Leaf.NotBefore) || now.After(pair.Leaf.NotAfter) {
		return false, true
	}
	third := min(pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)/3, 30*24*time.Hour)
	return true, pair.Leaf.NotAfter.Sub(now) <= third
}

// alone keeps others who share the directory from asking at the same time. The token is for a process that is wrongly taken for dead.
func (a *authority) alone(host string) (release func(), err error) {
	path, token := filepath.Join(a.dir, host+"+asking"), rand.Text()
	if aside := path + "-" + token; stale(path) && os.Rename(path, aside) == nil {
		// A fresh lock here is that of another process, which replaced the stale one first.
		if !stale(aside) {
			return nil, errors.Join(errOtherAsks, os.Rename(aside, path))
		}
		_ = os.Remove(aside)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, errOtherAsks
	}
	if err != nil {
		return nil, err
	}
	// A lock without its token is never released, and ends by becoming stale.
	_, _ = file.WriteString(token)
	_ = file.Close()
	return func() {
		if held, _ := os.ReadFile(path); string(held) == token {
			_ = os.Remove(path)
		}
	}, nil
}

func stale(path string) bool {
	// Open the file, because os.Stat may show what a network file system remembers.
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	held, err := file.Stat()
	return err == nil && time.Since(held.ModTime()) > askingStale
}
