package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"syscall"
)

// The environment of a child that may have the supervisor kill nodes: the supervisor's address and the token to show there.
const (
	SupervisorEnv      = "HOLDFAST_DEV_CONTROL"
	SupervisorTokenEnv = "HOLDFAST_DEV_TOKEN" //nolint:gosec // the name of a variable
)

// KillRequest is the body of POST /nodes/NAME/kill, which the supervisor answers.
type KillRequest struct {
	Signal syscall.Signal `json:"signal"`
}

// answerBytes is how much of a refusal is read.
const answerBytes = 2000

// Killer kills nodes of the cluster whose child this process is.
type Killer struct {
	supervisor, token string
	client            *http.Client
}

// NewKiller returns nil unless a supervisor gave this process the right.
func NewKiller() *Killer {
	address, token := os.Getenv(SupervisorEnv), os.Getenv(SupervisorTokenEnv)
	if address == "" || token == "" || !Supervised() {
		return nil
	}
	return &Killer{supervisor: address, token: token, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// Kill sends SIGKILL to a node and waits for its end. An error of the supervisor is its sentence.
func (k *Killer) Kill(ctx context.Context, node string) error {
	body, err := json.Marshal(KillRequest{Signal: syscall.SIGKILL})
	if err != nil {
		return fmt.Errorf("encode the request to the supervisor: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+k.supervisor+"/nodes/"+url.PathEscape(node)+"/kill", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the supervisor: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+k.token)
	response, err := k.client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the supervisor: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerBytes))
	if err != nil {
		return fmt.Errorf("read the supervisor's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(string(bytes.TrimSpace(answer)))
	}
	return nil
}
