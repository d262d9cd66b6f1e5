// Package readiness asks processes over HTTP whether they take work, as load balancers do: for the balancer of
// development clusters, for signaling nodes that have to send their clients to another one, and for `holdfast health`.
// Handler answers for a media node.
//
// It promises an answer within its limit, and that a frozen process, whose kernel goes on accepting, does not pass for a ready
// one. It does not know what readiness means to whom.
package readiness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Path is where a signaling node answers at its page's address, and a media node where it tells its metrics.
const Path = "/readyz"

// SocketsHeader has the number of the node's sockets.
const SocketsHeader = "Holdfast-Sockets"

// StoreHeader has the value StoreReached while the node reaches the store.
const (
	StoreHeader  = "Holdfast-Store"
	StoreReached = "reached"
)

// Handler answers 200 if check returns nil, and else 503 with the error as the text.
func Handler(check func(ctx context.Context) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err := check(r.Context()); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprintln(w, err)
			return
		}
		_, _ = fmt.Fprintln(w, "ready")
	})
}

const (
	answerBytes = 512
	maxSockets  = 1 << 40
)

// Asker asks processes whether they are ready. It is safe for concurrent use.
type Asker struct{ client *http.Client }

// New returns an Asker that waits for an answer as long as limit.
func New(limit time.Duration) *Asker {
	return &Asker{&http.Client{
		Timeout: limit,
		// Each question uses a new connection: an old one to a frozen process would stay open.
		Transport: &http.Transport{
			DisableKeepAlives: true,
			// The certificate is not checked, because certificates name no addresses here and nothing secret is sent.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the line above
		},
	}}
}

// Ask returns nil if host:port answers the path with status 200.
func (a *Asker) Ask(ctx context.Context, address, path string) error {
	_, err := a.Count(ctx, address, path)
	return err
}

// Count is Ask, and returns the number of the node's sockets. It is negative if unknown.
func (a *Asker) Count(ctx context.Context, address, path string) (sockets int64, err error) {
	header, err := a.askOrSecure(ctx, "http://"+address+path)
	sockets, fault := strconv.ParseInt(header.Get(SocketsHeader), 10, 64)
	if fault != nil || sockets > maxSockets {
		sockets = -1
	}
	return sockets, err
}

// ReachesStore is true if the signaling node at host:port is ready and says that it reaches the store.
func (a *Asker) ReachesStore(ctx context.Context, address string) (bool, error) {
	header, err := a.askOrSecure(ctx, "http://"+address+Path)
	return err == nil && header.Get(StoreHeader) == StoreReached, err
}

// AskURL is Ask for a whole URL.
func (a *Asker) AskURL(ctx context.Context, url string) error {
	_, err := a.askOrSecure(ctx, url)
	return err
}

func (a *Asker) askOrSecure(ctx context.Context, url string) (http.Header, error) {
	header, err := a.ask(ctx, url)
	status, ok := errors.AsType[*statusError](err)
	if rest, plain := strings.CutPrefix(url, "http://"); plain && ok && status.code == http.StatusBadRequest {
		// A TLS server answers a plain request with status 400, so the question is asked again over TLS.
		return a.ask(ctx, "https://"+rest)
	}
	return header, err
}

type statusError struct {
	url, status, said string
	code              int
}

func (e *statusError) Error() string {
	return strings.TrimSuffix(e.url+" answered "+e.status+": "+e.said, ": ")
}

// ask returns the header of the answer, whatever its status.
func (a *Asker) ask(ctx context.Context, url string) (http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if response.StatusCode != http.StatusOK {
		return response.Header, &statusError{url, response.Status, strings.TrimSpace(string(said)), response.StatusCode}
	}
	return response.Header, nil
}
