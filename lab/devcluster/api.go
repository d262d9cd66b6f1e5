package devcluster

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/tty"
)

const requestBytes = 64 << 10

// closeAPI ends the server and removes the state file.
func (s *Supervisor) serveAPI(ctx context.Context) (closeAPI func(), err error) {
	path, err := statePath(s.options.State)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for requests: %w", err)
	}
	s.mu.Lock()
	s.control = listener.Addr().String()
	s.mu.Unlock()
	server := &http.Server{
		Handler:           s.handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	closeAPI = func() {
		os.Remove(path)
		server.Close()
		<-done
	}
	state := stateFile{
		Pid: os.Getpid(), Control: listener.Addr().String(), Token: s.secrets.control, Access: s.secrets.access,
	}
	if err := state.write(path); err != nil {
		closeAPI()
		return nil, err
	}
	return closeAPI, nil
}

func (s *Supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { answer(w, s.Status(), nil) })
	mux.HandleFunc("POST /stop", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, struct{}{}, nil)
		s.Stop()
	})
	mux.HandleFunc("POST /nodes/{name}/kill", func(w http.ResponseWriter, r *http.Request) {
		var body child.KillRequest
		if decode(w, r, &body) {
			answer(w, struct{}{}, s.kill(r.Context(), r.PathValue("name"), body.Signal))
		}
	})
	start := func(run func(ctx context.Context, name string, env []string) (Node, error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var body startRequest
			if !decode(w, r, &body) {
				return
			}
			node, err := run(r.Context(), r.PathValue("name"), body.Env)
			if err == nil {
				err = s.waitFor(r.Context(), node)
			}
			// Of the other roles the cluster tells.
			if err == nil && node.Role != RoleSFU && node.Role != RoleSignaling {
				s.out.printf("%s  %s is up\n", s.paint(tty.Dim, clock(time.Now())), node.Name)
			}
			answer(w, node, err)
		}
	}
	mux.HandleFunc("POST /nodes/{name}/start", start(s.start))
	mux.HandleFunc("POST /sfu", start(func(ctx context.Context, _ string, env []string) (Node, error) { return s.addSFU(ctx, env) }))
	return s.authorize(mux)
}

// Any web page on this machine can reach a loopback port, so requests need the state file's token.
func (s *Supervisor) authorize(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.secrets.control)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "wrong or missing token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, requestBytes)).Decode(into); err != nil {
		http.Error(w, "the body is not the JSON expected: "+err.Error(), http.StatusBadRequest)
		return false
	}
	return true
}

func answer(w http.ResponseWriter, body any, err error) {
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body)
	case errors.Is(err, ErrNoSuchNode):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, ErrConflict):
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
