package redisstore

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// A store is believed only with a certificate by the authority that the URL names, and believes us only
// with one.
func TestTLSIsChecked(t *testing.T) {
	fleet := storetest.StartAloneTLS(t)
	at, err := url.Parse(patient(fleet.Server).URL)
	if err != nil {
		t.Fatal(err)
	}
	with := func(change func(url.Values)) string {
		query := at.Query()
		change(query)
		other := *at
		other.RawQuery = query.Encode()
		return other.String()
	}
	ping := func(rawURL string) error {
		return open(t, storetest.Server{URL: rawURL}).Ping(within(t, 10*time.Second))
	}
	if err := ping(at.String()); err != nil {
		t.Errorf("with everything: %v", err)
	}
	stranger := with(func(q url.Values) { q.Del("tls_ca") })
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](ping(stranger)); !unknown {
		t.Errorf("an authority that nobody named: %v, want it refused", ping(stranger))
	}
	if err := ping(with(func(q url.Values) { q.Del("tls_cert"); q.Del("tls_key") })); err == nil {
		t.Error("the server took us without a certificate")
	}
	named := at.Query().Get("tls_ca")
	for name, rawURL := range map[string]string{
		"no file":          with(func(q url.Values) { q.Set("tls_ca", filepath.Join(t.TempDir(), "absent.pem")) }),
		"no certificate":   with(func(q url.Values) { q.Set("tls_ca", q.Get("tls_key")) }),
		"half a pair":      with(func(q url.Values) { q.Del("tls_key") }),
		"no key":           with(func(q url.Values) { q.Set("tls_key", named) }),
		"no TLS to secure": "redis://127.0.0.1:1?tls_ca=" + url.QueryEscape(named),
	} {
		if _, err := Open(rawURL, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: Open gave no error", name)
		}
	}
}
