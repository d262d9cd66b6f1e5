package rest

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// serveNothing answers a request for an address that no node has.
func serveNothing(w http.ResponseWriter, _ *http.Request) {
	reply.Refuse(w, fault.Coded(wire.CodeNotFound, "no route"))
}

// servesWrongMethod answers a request whose address takes only other methods, and names those.
func servesWrongMethod(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.RawPath
		if path == "" {
			path = r.URL.Path
		}
		var allowed []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if routes.Match(chi.NewRouteContext(), method, path) {
				allowed = append(allowed, method)
			}
		}
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		reply.Refuse(w, fault.Sayf(wire.CodeWrongMethod, "This address takes %s, not %.20q.", list, r.Method))
	}
}

// EachRoute visits the method and the pattern of each route of a Handler's.
func EachRoute(handler http.Handler, visit func(method, route string)) {
	routes, ok := handler.(chi.Routes)
	if !ok {
		return
	}
	_ = chi.Walk(routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		visit(method, route)
		return nil
	})
}

// readableQuery refuses a query that is not encoded as queries are. Without it, the broken part would be left out in silence.
func readableQuery(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
			reply.Refuse(w, fault.Sayf(wire.CodeBadMessage, "The query, which follows the question mark, is not encoded as a query: encode names and values with percent signs."))
			return
		}
		next.ServeHTTP(w, r)
	})
}
