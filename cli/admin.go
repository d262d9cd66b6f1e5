package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/invocation"
	"github.com/holdfast-rtc/holdfast/node"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

const answerBytes = 64 << 20

// serverFlags lead to the operator's API: by default of this user's development cluster.
type serverFlags struct {
	node.KeyringConfig
	devStateFlag
	Server string `aliases:"url" placeholder:"URL" help:"A signaling node, for example http://127.0.0.1:7880; by default this user's development cluster, or the node of this container."`
	Token  string `help:"A token with the operator's grant (roomList, roomAdmin and clusterAdmin, no room), or for 'remove' with roomAdmin of the room; made from --api-keys when empty."`
	JSON   bool   `name:"json" help:"Print the result as JSON, for programs, and nothing else on the standard output: one value, of events one value a line."`

	// client is that of http.DefaultClient unless it asks the own node.
	client *http.Client
}

// developmentCluster is what an operator's verb asks of a development cluster when it is not told a server or keys.
type developmentCluster interface {
	page(ctx context.Context) (url string, err error)
	apiKeys() string // as --api-keys takes them
	processes(ctx context.Context) []string
}

// adminTokenLife is just long enough for the question.
const adminTokenLife = time.Minute

// resolve finds the server, and returns the token for one request. A verb may ask for hours, so each request gets a new token.
func (f *serverFlags) resolve(ctx context.Context) (token string, err error) {
	if f.Server == "" {
		if err := f.findServer(ctx); err != nil {
			return "", err
		}
	}
	if f.Token != "" {
		return f.Token, nil
	}
	keys, err := f.Keyring()
	if err != nil {
		return "", node.Faults(err)
	}
	return keys.Mint("", access.Operator("operator"), adminTokenLife)
}

// findServer takes the development cluster that runs here, or else the node of this container.
func (f *serverFlags) findServer(ctx context.Context) error {
	ownKeys := f.APIKeys != "" || f.APIKeysFile != ""
	dev, err := findDev(ctx, f.State)
	switch {
	case err == nil:
		if !ownKeys {
			f.APIKeys = dev.apiKeys()
		}
		f.Server, err = dev.page(ctx)
		return err
	case f.State != "" || severalDev(err):
		return node.Faults(errors.New("--server: none given, and " + err.Error()))
	}
	own, ownErr := findOwnNode(ctx, firstProcess())
	if ownErr != nil {
		return &usageError{noDev(err) + ownErr.Error() + ": name one with --server" + devAdvice()}
	}
	f.Server, f.client = own.url, loopbackClient()
	if !ownKeys {
		f.APIKeys, f.APIKeysFile = own.keys.APIKeys, own.keys.APIKeysFile
	}
	return nil
}

func (f *serverFlags) show(ctx context.Context, s streams, method, path string) error {
	body, err := f.send(ctx, method, path)
	if err != nil {
		return err
	}
	return printJSON(s.out, body)
}

func (f *serverFlags) send(ctx context.Context, method, path string) ([]byte, error) {
	return f.sendBody(ctx, method, path, nil)
}

// sendBody sends JSON, if there is any. An answer that is not 200 is an *answerError.
func (f *serverFlags) sendBody(ctx context.Context, method, path string, content []byte) ([]byte, error) {
	token, err := f.resolve(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second) // one slow media node holds the list of rooms up for seconds
	defer cancel()
	address := strings.TrimSuffix(f.Server, "/") + "/api/v1/" + path
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return nil, node.Faults(fmt.Errorf("--server %q is not a URL: %w", f.Server, err))
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := cmp.Or(f.client, http.DefaultClient).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, refused(address, response, body)
	}
	return body, nil
}

// answerError is an answer other than 200.
type answerError struct {
	address, text string
	status        int
	// said is the server's sentence or, if the answer has none, its first bytes.
	said     string
	sentence bool
}

// Error is the server's sentence. Without one, and where the token is at fault, it says who answered.
func (e *answerError) Error() string {
	if e.sentence && e.status != http.StatusUnauthorized {
		return e.said
	}
	return fmt.Sprintf("%s answered %s: %s", e.address, e.text, e.said)
}

func refused(address string, response *http.Response, body []byte) *answerError {
	e := &answerError{address: address, text: response.Status, status: response.StatusCode}
	var said struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if e.sentence = json.Unmarshal(body, &said) == nil && said.Message != ""; e.sentence {
		e.said = asTyped(said.Message)
	} else {
		e.said = fmt.Sprintf("%.200s", body)
	}
	return e
}

// asTyped names this program as it was started in a server's advice, such as "`holdfast rooms` lists them".
func asTyped(sentence string) string {
	name := invocation.Name()
	return strings.NewReplacer("`holdfast ", "`"+name+" ", "(holdfast ", "("+name+" ", ": holdfast ", ": "+name+" ").Replace(sentence)
}

func printJSON(w io.Writer, body []byte) error {
	var value any
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("decode the answer: %w", err)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

func encodeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
