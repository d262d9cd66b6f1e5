package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// certificate is from two files, which may change while it is in use.
type certificate struct {
	certFile, keyFile string
	// text is the content of both files, as it was last used.
	text    []byte
	current atomic.Pointer[tls.Certificate]
}

// readCertificate names the flags --NAME-cert and --NAME-key in its errors.
func readCertificate(name, certFile, keyFile string) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile}
	if _, err := c.read(); err != nil {
		return nil, fmt.Errorf("--%s-cert, --%s-key: %w", name, name, err)
	}
	return c, nil
}

// read uses the files if they have changed and go together.
func (c *certificate) read() (changed bool, err error) {
	cert, err := ReadKeyFile(c.certFile)
	if err != nil {
		return false, err
	}
	key, err := ReadKeyFile(c.keyFile)
	if err != nil {
		return false, err
	}
	text := []byte(cert + "\x00" + key)
	if bytes.Equal(text, c.text) {
		return false, nil
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		return false, fmt.Errorf("%s and %s: %w", c.certFile, c.keyFile, err)
	}
	c.text = text
	c.current.Store(&pair)
	return true, nil
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}

// watch rereads the files until ctx ends. Bad files are logged once, and the certificate in use stays.
func (c *certificate) watch(ctx context.Context, log *slog.Logger) error {
	return reread(ctx, log, "certificate not replaced: the one in use stays", func() error {
		changed, err := c.read()
		if changed {
			log.Info("certificate replaced", "file", c.certFile, "until", c.current.Load().Leaf.NotAfter)
		}
		return err
	})
}
