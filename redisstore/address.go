package redisstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	kindSingle   = ""
	kindSentinel = "sentinel"
	kindCluster  = "cluster"
)

// poolSize is fixed, because go-redis's own default grows with the cores.
const poolSize = 128

type address struct {
	kind     string
	hosts    []string
	master   string
	sentinel url.Userinfo
	// options are for the data servers.
	options *redis.Options
}

var (
	errNoMaster = errors.New("a Sentinel URL names its master: redis+sentinel://host:port,host:port/master")
	errNoHost   = errors.New("the URL names no host")
	errKind     = errors.New("the scheme is none of redis, redis+sentinel, redis+cluster, those with rediss, or unix")
	errManyHost = errors.New("several hosts need redis+sentinel:// or redis+cluster://")
)

// parseAddress reads a store's URL. Its errors do not show passwords.
func parseAddress(rawURL string) (address, error) {
	scheme, rest, _ := strings.Cut(rawURL, "://")
	plain, kind, _ := strings.Cut(scheme, "+")
	overTCP := (plain == "redis" || plain == "rediss") && (kind == kindSingle || kind == kindSentinel || kind == kindCluster)
	if !overTCP && scheme != "unix" {
		return address{}, errKind
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user, hosts := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, hosts = authority[:i+1], authority[i+1:]
	}
	path, rawQuery, _ := strings.Cut(tail, "?")
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return address{}, errors.New("the query cannot be read")
	}
	files := takeTLSFiles(query)
	a := address{kind: kind, hosts: strings.Split(hosts, ",")}
	if kind == kindSingle {
		if len(a.hosts) > 1 {
			return address{}, errManyHost
		}
		return a, a.read(plain+"://"+authority+path+"?"+query.Encode(), files)
	}
	for i, host := range a.hosts {
		if host == "" {
			return address{}, errNoHost
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			a.hosts[i] = net.JoinHostPort(host, map[string]string{kindSentinel: "26379", kindCluster: "6379"}[kind])
		}
	}
	if kind == kindSentinel {
		if a.master, err = url.PathUnescape(strings.Trim(path, "/")); err != nil || a.master == "" {
			return address{}, errNoMaster
		}
		a.sentinel = *url.UserPassword(query.Get("sentinel_username"), query.Get("sentinel_password"))
		query.Del("sentinel_username")
		query.Del("sentinel_password")
	}
	return a, a.read(plain+"://"+user+a.hosts[0]+"?"+query.Encode(), files)
}

func (a *address) read(single string, files tlsFiles) error {
	options, err := redis.ParseURL(single)
	if err != nil {
		if withURL, ok := errors.AsType[*url.Error](err); ok {
			err = withURL.Err
		}
		return err
	}
	if err := files.apply(options.TLSConfig); err != nil {
		return err
	}
	options.Protocol = 2
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.ContextTimeoutEnabled = true
	options.DialTimeout = cmp.Or(options.DialTimeout, dialTimeout)
	// A dialer does not repeat: only MaxRetries does.
	options.DialerRetries = 1
	options.ReadTimeout = cmp.Or(options.ReadTimeout, exchangeTimeout)
	options.WriteTimeout = cmp.Or(options.WriteTimeout, exchangeTimeout)
	options.PoolTimeout = cmp.Or(options.PoolTimeout, poolTimeout)
	options.PoolSize = cmp.Or(options.PoolSize, poolSize)
	// Pipelines use the same pool, so that warm keeps one pool ready.
	options.PipelinePoolSize = -1
	options.MaxRetries = cmp.Or(options.MaxRetries, maxRetries)
	options.MinRetryBackoff = minRetryBackoff
	options.MaxRetryBackoff = maxRetryBackoff
	if options.TLSConfig != nil && a.kind != kindSingle {
		// Each server of a Cluster has a name of its own.
		options.TLSConfig.ServerName = ""
	}
	options.Dialer = patientDialer(options.TLSConfig)
	a.options = options
	return nil
}

// sentinelOptions are for a client of one Sentinel. It greets nobody: a Sentinel is no incarnation of the store.
func (a *address) sentinelOptions(address string) *redis.Options {
	o := a.options
	password, _ := a.sentinel.Password()
	return &redis.Options{
		Addr: address, Username: a.sentinel.Username(), Password: password, TLSConfig: o.TLSConfig,
		Protocol: o.Protocol, DisableIdentity: true, MaintNotificationsConfig: o.MaintNotificationsConfig,
		Dialer: patientDialer(o.TLSConfig), DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: true,
		PoolSize: 2, PoolTimeout: o.PoolTimeout, PipelinePoolSize: o.PipelinePoolSize,
		MaxRetries: 1, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
	}
}

func (a *address) cluster(newClient func(*redis.Options) *redis.Client) *redis.ClusterOptions {
	o := a.options
	return &redis.ClusterOptions{
		Addrs: a.hosts, NewClient: newClient, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		Protocol: o.Protocol, DisableIdentity: true, MaintNotificationsConfig: o.MaintNotificationsConfig,
		Dialer: o.Dialer, DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: true,
		PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, PipelinePoolSize: o.PipelinePoolSize,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		MaxRedirects: maxRetries + 1,
	}
}

type brokenConn struct {
	net.Conn
	why error
}

func broken(why error) *brokenConn {
	pipe, _ := net.Pipe()
	return &brokenConn{Conn: pipe, why: why}
}

func (b *brokenConn) Read([]byte) (int, error) { return 0, b.why }

func (b *brokenConn) Write([]byte) (int, error) { return 0, b.why }

// patientDialer answers a failed dial with a brokenConn, because go-redis stops dialing for seconds after poolSize
// failures.
func patientDialer(secure *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{}
	dial := plain.DialContext
	if secure != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: secure}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return broken(fmt.Errorf("dial %s: %w", addr, err)), nil
		}
		return conn, nil
	}
}
