package rest

import (
	_ "embed"
	"net/http"
)

// openAPI describes the HTTP API in OpenAPI 3.1. It is written by hand, one operation or schema a line; tests compare it with the routes and
// with every answer of the package signaling's tests.
//
//go:embed openapi.json
var openAPI []byte

// OpenAPI returns the document that describes the HTTP API.
func OpenAPI() []byte { return openAPI }

func serveOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(openAPI)
}
