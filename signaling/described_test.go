package signaling

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/twirp"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// document is openapi.json. Its objects have no other fields than those described, so that nothing is answered which is not.
type document struct {
	api       *openapi3.T
	templates []template
}

type template struct {
	path    string
	matches *regexp.Regexp
}

func readDocument() (*document, error) {
	var raw any
	if err := json.Unmarshal(rest.OpenAPI(), &raw); err != nil {
		return nil, err
	}
	closeObjects(raw)
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, err
	}
	loader := openapi3.NewLoader()
	doc := &document{}
	if doc.api, err = loader.LoadFromData(text); err != nil {
		return nil, err
	}
	for path := range doc.api.Paths.Map() {
		pattern := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+")
		doc.templates = append(doc.templates, template{path, regexp.MustCompile("^" + pattern + "$")})
	}
	return doc, doc.api.Validate(loader.Context)
}

// closeObjects forbids further fields in every schema that names fields.
func closeObjects(value any) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			closeObjects(one)
		}
	case map[string]any:
		if _, has := v["properties"].(map[string]any); has && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
		for _, one := range v {
			closeObjects(one)
		}
	}
}

var theDocument = sync.OnceValues(readDocument)

// TestTheDocumentIsValid: openapi.json is OpenAPI 3.1, and has the codes of package wire.
func TestTheDocumentIsValid(t *testing.T) {
	doc, err := theDocument()
	if err != nil {
		t.Fatal(err)
	}
	codes := doc.api.Components.Schemas["Code"].Value.Enum
	for _, code := range codes {
		if name, _ := code.(string); wire.MeaningOf(wire.Code(name)).Code != wire.Code(name) {
			t.Errorf("no code is named %v", code)
		}
	}
	if want := wire.Codes(); len(codes) != len(want) {
		t.Errorf("openapi.json has %d codes, want %v", len(codes), want)
	}
	for _, wrong := range []struct{ path, body string }{
		{"/api/v1/config", `{"dev": true, "protocol": 1, "surprise": 1}`}, {"/api/v1/config", `{"dev": true}`}, {"/api/v1/config", `plain text`},
	} {
		request := httptest.NewRequest(http.MethodGet, wrong.path, http.NoBody)
		if doc.check(request, nil, http.StatusOK, "application/json", []byte(wrong.body)) == nil {
			t.Errorf("%s is taken for an answer of %s", wrong.body, wrong.path)
		}
	}
}

// described fails the test for each answer to a request which openapi.json does not describe.
func described(t *testing.T, next http.Handler) http.Handler {
	doc, err := theDocument()
	if err != nil {
		t.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A WebSocket has no answer, and HEAD none with a body. LiveKit's protocol and its server API are not described.
		if r.URL.Path == "/ws" || strings.HasPrefix(r.URL.Path, "/rtc") || strings.HasPrefix(r.URL.Path, twirp.Prefix) || r.Method == http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		asked, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(asked))
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		if err := doc.check(r, asked, answer.Code, answer.Header().Get("Content-Type"), answer.Body.Bytes()); err != nil {
			t.Errorf("%s %s is answered %d %.300s, which openapi.json does not describe: %v", r.Method, r.URL.Path, answer.Code, answer.Body, err)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

func (d *document) operation(r *http.Request) *openapi3.Operation {
	path := r.URL.EscapedPath()
	for _, template := range d.templates {
		if template.matches.MatchString(path) {
			return d.api.Paths.Value(template.path).GetOperation(r.Method)
		}
	}
	// A room's name may contain slashes.
	if strings.HasPrefix(path, "/api/v1/rooms/") {
		return d.api.Paths.Value("/api/v1/rooms/{room}").GetOperation(r.Method)
	}
	return nil
}

// check returns an error for an answer that is not described, or for a request that is not and succeeded.
func (d *document) check(r *http.Request, asked []byte, status int, mediaType string, body []byte) error {
	operation := d.operation(r)
	if operation == nil {
		// It is a file of the page.
		if status < http.StatusBadRequest {
			return nil
		}
		return visit(d.api.Components.Schemas["Refusal"], body)
	}
	if status == http.StatusOK {
		if err := d.checkRequest(operation, r, asked); err != nil {
			return fmt.Errorf("the request: %w", err)
		}
	}
	response := operation.Responses.Value(strconv.Itoa(status))
	if response == nil {
		response = operation.Responses.Default()
		if status < http.StatusBadRequest {
			return fmt.Errorf("no status %d", status)
		}
	}
	mediaType, _, _ = strings.Cut(mediaType, ";")
	content := response.Value.Content[mediaType]
	if content == nil {
		return fmt.Errorf("no %q", mediaType)
	}
	if mediaType != "application/json" {
		return nil
	}
	return visit(content.Schema, body)
}

func (d *document) checkRequest(operation *openapi3.Operation, r *http.Request, asked []byte) error {
	for name := range r.URL.Query() {
		if operation.Parameters.GetByInAndName("query", name) == nil {
			return fmt.Errorf("no parameter %q", name)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	if operation.RequestBody == nil {
		return fmt.Errorf("no body, and it is %.40q", asked)
	}
	return visit(operation.RequestBody.Value.Content["application/json"].Schema, asked)
}

func visit(schema *openapi3.SchemaRef, text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	return schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
}
