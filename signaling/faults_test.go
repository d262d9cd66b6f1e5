package signaling

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/door"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

type namedError struct {
	name string
	err  error
}

// errorsOfSignaling are the errors that a package of signaling declares.
func errorsOfSignaling() []namedError {
	return []namedError{
		{"errOrder", errOrder},
		{"errNoFirst", errNoFirst},
		{"errFlood", limits.ErrFlood},
		{"errResumeExpired", errResumeExpired},
		{"errWithdrawn", errWithdrawn},
		{"errManyOffers", errManyOffers},
		{"errTooOften", limits.ErrTooOften},
		{"errCollecting", rest.ErrCollecting},
		{"errTurnedAway", errTurnedAway},
		{"errStopping", errStopping},
		{"errLeaving", errLeaving},
		{"errShed", errShed},
		{"errWhom", rest.ErrWhom},
		{"errNoMessages", errNoMessages},
		{"errElsewhere", errElsewhere},
		{"errInNoRoom", errInNoRoom},
		{"errNoChat", errNoChat},
		{"errNoRename", errNoRename},
		{"errUnseen", errUnseen},
		{"errNotModerator", errNotModerator},
		{"errLost", errLost},
		{"errSlow", errSlow},
		{"errFull", errFull},
		{"errCrowded", errCrowded},
		{"errTongue", errTongue},
		{"errNonsense", errNonsense},
		{"errBroke", errBroke},
		{"errStruck", sfulink.ErrStruck},
		{"errNotPublished", errNotPublished},
		{"errNoCheck", rest.ErrNoCheck},
		{"errUnheard", errUnheard},
		{"errCutOff", errCutOff},
		{"errWarming", errWarming},
		{"errStoreless", errStoreless},
		{"errNoWatch", errNoWatch},
		{"errManyWatches", errManyWatches},
		{"errNoRoom", errNoRoom},
		{"errManyAsked", rest.ErrManyAsked},
		{"errNoPage", rest.ErrNoPage},
		{"errUsersUnknown", rest.ErrUsersUnknown},
		{"access.ErrExpired", access.ErrExpired},
		{"access.ErrForged", access.ErrForged},
		{"access.ErrUnknownKey", access.ErrUnknownKey},
		{"access.ErrUnfit", access.ErrUnfit},
		{"access.ErrNoIdentity", access.ErrNoIdentity},
		{"access.ErrNotJoin", access.ErrNotJoin},
		{"access.ErrOtherRoom", access.ErrOtherRoom},
		{"access.ErrNotAdmin", access.ErrNotAdmin},
		{"access.ErrNotCluster", access.ErrNotCluster},
		{"access.ErrNotClusterAdmin", access.ErrNotClusterAdmin},
		{"access.ErrCheck", access.ErrCheck},
		{"access.ErrBadRoom", access.ErrBadRoom},
		{"endings.ErrLeft", endings.ErrLeft},
		{"endings.ErrKicked", endings.ErrKicked},
		{"endings.ErrRemovedUser", endings.ErrRemovedUser},
		{"moderation.ErrNotHere", moderation.ErrNotHere},
		{"moderation.ErrAskedAlready", moderation.ErrAskedAlready},
		{"sfulink.ErrUnreachable", sfulink.ErrUnreachable},
		{"sfulink.ErrStuck", sfulink.ErrStuck},
		{"wire.ErrUnknownType", wire.ErrUnknownType},
		{"wire.ErrMalformed", wire.ErrMalformed},
		{"limits.QuotaError", &limits.QuotaError{What: "joins", Whose: "identity"}},
	}
}

// errorsOfOthers are the errors of packages that know no client, and the refusals of media nodes and of doors.
func errorsOfOthers() []namedError {
	list := []namedError{
		{"orchestrator.ErrNotSettled", orchestrator.ErrNotSettled},
		{"orchestrator.ErrNoNodes", orchestrator.ErrNoNodes},
		{"orchestrator.ErrStoreUnavailable", orchestrator.ErrStoreUnavailable},
		{"orchestrator.ErrContended", orchestrator.ErrContended},
		{"orchestrator.ErrNobodyThere", orchestrator.ErrNobodyThere},
		{"orchestrator.ErrNoPin", orchestrator.ErrNoPin},
		{"orchestrator.NoHeadroomError", &orchestrator.NoHeadroomError{}},
		{"pin.ErrLater", pin.ErrLater},
		{"messaging.ErrFull", messaging.ErrFull},
		{"messaging.ErrSenderFull", messaging.ErrSenderFull},
		{"messaging.ErrReceiverFull", messaging.ErrReceiverFull},
		{"messaging.ErrNodeFull", messaging.ErrNodeFull},
		{"unknown", errors.New("a word of the store")},
	}
	for _, reason := range []waitlist.Reason{waitlist.Full, waitlist.Closed, waitlist.NoCapacity, waitlist.Settling} {
		wait := &waitlist.WaitError{}
		wait.Answer.Place.Reason = reason
		list = append(list, namedError{"WaitError " + string(reason), wait})
	}
	for number := range int32(len(control.Refusal_name)) {
		code := control.Refusal(number)
		list = append(list, namedError{"RefusedError " + code.String(), &sfulink.RefusedError{Code: code, Message: "inner words"}})
	}
	return list
}

// combinedErrors are the errors that name two faults: which of them the client hears is behaviour.
func combinedErrors() []namedError {
	full := &waitlist.WaitError{}
	full.Answer.Place.Reason = waitlist.Full
	both := func(outer, inner error) error { return fmt.Errorf("%w: %w", outer, inner) }
	return []namedError{
		{"forged resume token", forgedResume(access.ErrForged)},
		{"resume token of an unknown key", forgedResume(access.ErrUnknownKey)},
		{"resumed, but the room is full", resumeExpired(full)},
		{"too many watches of the node", both(errManyWatches, presence.ErrTooManyWatches)},
		{"not waiting", both(wire.ErrMalformed, door.ErrNotWaiting)},
		{"nobody named", both(wire.ErrMalformed, rest.ErrWhom)},
		{"too many asked", both(wire.ErrMalformed, rest.ErrManyAsked)},
		{"withdrawn key", fmt.Errorf("%w: it was withdrawn", access.ErrUnknownKey)},
		{"unfit token", fmt.Errorf("%w: it is too long", access.ErrUnfit)},
		{"unprintable room", fmt.Errorf("%w: it contains U+200B", access.ErrBadRoom)},
		{"unknown type", fmt.Errorf("%w %q", wire.ErrUnknownType, "dance")},
		{"unreachable node", both(sfulink.ErrUnreachable, orchestrator.ErrNobodyThere)},
		{"unreachable node that refused", both(sfulink.ErrUnreachable, &sfulink.RefusedError{Code: control.Refusal_REFUSAL_ROOM_FULL})},
		{"silent store", both(orchestrator.ErrStoreUnavailable, errors.New("dial tcp 10.0.0.7"))},
		{"pin of a newer node", both(orchestrator.ErrStoreUnavailable, pin.ErrLater)},
		{"no second node", fmt.Errorf("%w beside sfu-1", orchestrator.ErrNoNodes)},
	}
}

func forgedResume(err error) error { return errForgedResume.Over(err) }

func resumeExpired(err error) error { return errResumeExpired.Over(err) }

// TestGoldenFaults pins what a client hears of every error: the status and the headers of a request, and the fault of a
// socket with the close code that follows if the error ends the session. HOLDFAST_GOLDEN=1 writes the file.
func TestGoldenFaults(t *testing.T) {
	var text strings.Builder
	for _, list := range [][]namedError{errorsOfSignaling(), errorsOfOthers(), combinedErrors()} {
		for _, one := range list {
			writeGolden(&text, one.name, one.err)
			wrapped, plain := reply.Of(fmt.Errorf("somewhere: %w", one.err)), reply.Of(one.err)
			if wrapped.Code != plain.Code {
				t.Errorf("%s is %s, and %s when it is wrapped", one.name, plain.Code, wrapped.Code)
			}
			if wrapped.Message != plain.Message {
				fmt.Fprintf(&text, "  wrapped: %q\n", wrapped.Message)
			}
		}
	}
	for _, one := range drainFaults(t) {
		writeGoldenRequest(&text, one.name, one.err)
	}
	moveFaults(t, &text)
	const golden = "testdata/faults.txt"
	if os.Getenv("HOLDFAST_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	wanted := strings.Split(string(want), "\n")
	for i, line := range strings.Split(text.String(), "\n") {
		if i >= len(wanted) || line != wanted[i] {
			t.Fatalf("line %d is\n%s\nand %s has\n%s", i+1, line, golden, strings.Join(wanted[min(i, len(wanted)):min(i+1, len(wanted))], ""))
		}
	}
}

func writeGolden(text *strings.Builder, name string, err error) {
	writeGoldenRequest(text, name, err)
	fault, how := reply.Of(err), endingOf(err)
	fmt.Fprintf(text, "  socket: %s retryable=%t after=%d closes with %d %q\n    %s\n",
		fault.Code, fault.Retryable, fault.RetryAfterMs, how.code, how.reason, fault.Message)
}

func writeGoldenRequest(text *strings.Builder, name string, err error) {
	recorder := httptest.NewRecorder()
	reply.Refuse(recorder, err)
	fmt.Fprintf(text, "%s: %q\n", name, err.Error())
	fmt.Fprintf(text, "  request: %d %s", recorder.Code, recorder.Body)
	for _, header := range []string{"Retry-After", "WWW-Authenticate"} {
		if value := recorder.Header().Get(header); value != "" {
			fmt.Fprintf(text, "    %s: %s\n", header, value)
		}
	}
}

// drainFaults are the refusals of orders to drain that need no media node.
func drainFaults(t *testing.T) []namedError {
	t.Helper()
	one := cluster.Node{ID: "sfu-1"}
	refused := func(node cluster.Node) error {
		order := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		_, err := rest.DrainOrder(order, &cluster.View{Nodes: map[ring.NodeID]cluster.Node{node.ID: node}}, node)
		return err
	}
	view := &cluster.View{
		Nodes:     map[ring.NodeID]cluster.Node{"sfu-1": one, "sfu-2": {ID: "sfu-2"}},
		Signaling: map[ring.NodeID]cluster.Node{"signaling-1": {}},
	}
	_, signaling := rest.MediaNode(view, "signaling-1")
	_, unknown := rest.MediaNode(view, "sfu-9")
	_, none := rest.MediaNode(&cluster.View{}, "sfu-9")
	return []namedError{
		{"drain of a signaling node", signaling},
		{"drain of an unknown node", unknown},
		{"drain of a node where none is up", none},
		{"drain of a draining node", refused(cluster.Node{ID: "sfu-1", Draining: true})},
		{"drain of the last node", refused(one)},
	}
}

// moveFaults are the refusals of orders to move a room.
func moveFaults(t *testing.T, text *strings.Builder) {
	t.Helper()
	r := newRig(t)
	e := r.signalingNode(nil)
	token := r.mint(access.Operator("root"), generous)
	for _, room := range []string{"nowhere", "a%E2%80%8Bb"} {
		status, body, header := e.requestBody(http.MethodPost, "/api/v1/rooms/"+room+"/move", token, "{}")
		fmt.Fprintf(text, "move of %s\n  %d %s %q\n", room, status, strings.TrimSpace(body), header.Get("Retry-After"))
	}
}
