package child

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAReportIsOneLine(t *testing.T) {
	var said bytes.Buffer
	if err := Announce(&said, map[string]string{AddressHTTP: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	var report Report
	if err := json.Unmarshal(said.Bytes(), &report); err != nil || report.Pid != os.Getpid() || report.Addresses[AddressHTTP] != "127.0.0.1:1" {
		t.Errorf("reported %+v, %v", report, err)
	}
	if text := said.String(); strings.Index(text, "\n") != len(text)-1 {
		t.Errorf("the report is not one line: %q", text)
	}
}

func TestAChildEndsWhenItsPipeIsClosed(t *testing.T) {
	reader, writer := io.Pipe()
	ended := make(chan struct{})
	EndWithParent(reader, func() { close(ended) })
	select {
	case <-ended:
		t.Fatal("it ended before its supervisor did")
	default:
	}
	_ = writer.Close()
	<-ended
}

// TestOnlyAChildWithTheRightKills: the variables alone, left over in a shell, are not enough.
func TestOnlyAChildWithTheRightKills(t *testing.T) {
	t.Setenv(SupervisorEnv, "127.0.0.1:1")
	t.Setenv(SupervisorTokenEnv, "secret")
	t.Setenv(SupervisedEnv, "")
	if NewKiller() != nil {
		t.Error("a process without a supervisor kills")
	}
	t.Setenv(SupervisedEnv, "1")
	if NewKiller() == nil {
		t.Error("a child with the right does not kill")
	}
	t.Setenv(SupervisorTokenEnv, "")
	if NewKiller() != nil {
		t.Error("a child without a token kills")
	}
}

func TestAKillIsAskedOfTheSupervisor(t *testing.T) {
	supervisor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body KillRequest
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Signal != syscall.SIGKILL {
			t.Errorf("asked for %+v, %v", body, err)
		}
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked by %s as %q", r.Method, r.Header.Get("Authorization"))
		}
		if r.URL.Path != "/nodes/sfu-1/kill" {
			http.Error(w, "there is no such node", http.StatusNotFound)
		}
	}))
	defer supervisor.Close()
	t.Setenv(SupervisorEnv, strings.TrimPrefix(supervisor.URL, "http://"))
	t.Setenv(SupervisorTokenEnv, "secret")
	t.Setenv(SupervisedEnv, "1")
	killer := NewKiller()
	if err := killer.Kill(t.Context(), "sfu-1"); err != nil {
		t.Error(err)
	}
	if err := killer.Kill(t.Context(), "sfu-9"); err == nil || err.Error() != "there is no such node" {
		t.Errorf("a node that is not there: %v", err)
	}
}
