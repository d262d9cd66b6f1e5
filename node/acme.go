package node

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// acmeFlags have a certificate authority certify the page's names, by ACME (RFC 8555).
type acmeFlags struct {
	ACMEHost        []string `name:"acme-host" placeholder:"NAME" help:"Instead of --tls-cert: names of this page that a certificate authority is asked to certify (ACME). It checks each at port 443, which must lead to --listen, or at port 80, to --redirect-listen."`
	ACMECache       string   `name:"acme-cache" placeholder:"DIR" help:"Where the account's key, the certificates and their keys are kept. Nodes behind one name share the directory."`
	ACMEDirectory   string   `name:"acme-directory" default:"https://acme-v02.api.letsencrypt.org/directory" help:"The directory URL of the certificate authority; by default Let's Encrypt."`
	ACMEAcceptTerms bool     `name:"acme-accept-terms" help:"You agree to the terms of the certificate authority."`
}

// hostName is a name with a dot, in ASCII, lower case.
var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (f acmeFlags) checkACME() error {
	if len(f.ACMEHost) == 0 {
		return nil
	}
	var found []error
	for _, host := range f.ACMEHost {
		_, notIP := netip.ParseAddr(host)
		switch {
		case strings.HasPrefix(host, "*."):
			found = append(found, fmt.Errorf("--acme-host %q: name each host; a wildcard cannot be checked at this node", host))
		case notIP == nil || !hostName.MatchString(host):
			found = append(found, fmt.Errorf("--acme-host %q: give a public name such as meet.example.org, in lower case and ASCII (xn--...), without a port", host))
		}
	}
	if f.ACMECache == "" {
		found = append(found, errors.New("--acme-cache: name a directory that stays: without it each start asks for a new certificate, until the authority refuses"))
	}
	if to, err := url.Parse(f.ACMEDirectory); err != nil || to.Scheme != "https" || to.Host == "" {
		found = append(found, fmt.Errorf("--acme-directory %q: give the https URL of the authority's directory", f.ACMEDirectory))
	}
	if !f.ACMEAcceptTerms {
		found = append(found, fmt.Errorf("--acme-accept-terms: read the terms that %s names, and give the flag if you agree", f.ACMEDirectory))
	}
	return errors.Join(found...)
}

// newAuthority makes the directory, so that one which cannot be written to is told at the start.
func (f acmeFlags) newAuthority() (*authority, error) {
	err := os.MkdirAll(f.ACMECache, 0o700)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(f.ACMECache, "probe"); err == nil {
			err = errors.Join(probe.Close(), os.Remove(probe.Name()))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("--acme-cache: %w", err)
	}
	hosts := slices.Clone(f.ACMEHost)
	slices.Sort(hosts)
	return newAuthority(slices.Compact(hosts), f.ACMEDirectory, f.ACMECache)
}
