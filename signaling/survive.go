package signaling

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// A panic costs the connection whose input it was. A media node's event costs only itself: every session hears it, and
// another client may have caused it.

var (
	errBroke  = errors.New("this signaling node broke while it handled this connection")
	errStruck = errors.New("what this identity sent has broken the server twice")
)

func (s *session) strikeName() string { return s.who.Key + "\x00" + s.who.Identity }

func (s *session) runOrBreak(run func() ending) (how ending) {
	if caught := panics.Catch(func() { how = run() }); caught != nil {
		return s.broke(caught, "a session broke its handling: closed")
	}
	return how
}

func (s *session) handleOrBreak(ctx context.Context, next inbound) (how ending, done bool) {
	caught, broken := errors.AsType[*panics.Error](next.err)
	if !broken {
		if caught = panics.Catch(func() { how, done = s.handle(ctx, next) }); caught == nil {
			return how, done
		}
	}
	s.server.panics.Strike(s.strikeName())
	return s.broke(caught, "a client's message broke its handling: session closed"), true
}

func (s *session) broke(caught *panics.Error, what string) ending {
	s.report(caught, what)
	s.socket.send(faultOf(errBroke))
	return endingOf(errBroke)
}

func (s *session) report(caught *panics.Error, what string) {
	s.server.panics.Report(s.log, caught, what, "identity", s.who.Identity, "remote", s.socket.tcp.RemoteAddr().String())
}

// work runs f beside the loop; a panic ends the session.
func (s *session) work(f func()) {
	s.workers.Go(func() {
		if caught := panics.Catch(f); caught != nil {
			s.report(caught, "work for a session broke: closed")
			s.socket.end(errBroke)
		}
	})
}

// bear is deferred by the socket's goroutines.
func (k *socket) bear() {
	if caught := panics.Of(recover()); caught != nil {
		k.panics.Report(k.log, caught, "a socket broke its reading or writing: session closed", "remote", k.tcp.RemoteAddr().String())
		k.end(errBroke)
	}
}

func (s *Server) bearRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caught := panics.Catch(func() { next.ServeHTTP(w, r) })
		if caught == nil {
			return
		}
		s.panics.Report(s.log, caught, "a request broke its handling", "method", r.Method, "path", fmt.Sprintf("%.200q", r.URL.Path), "remote", r.RemoteAddr)
		w.Header().Set("Connection", "close")
		writeFault(w, errBroke)
	})
}

func (s *Server) borne(ask func() error) (err error) {
	if caught := panics.Catch(func() { err = ask() }); caught != nil {
		s.panics.Report(s.log, caught, "a media node's reply broke its reading")
		return errBroke
	}
	return err
}
