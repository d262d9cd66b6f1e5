package wire

import "net/http"

// Code says what went wrong.
type Code string

// The codes.
const (
	CodeBadToken         Code = "bad_token"
	CodeTokenExpired     Code = "token_expired"
	CodeNotAllowed       Code = "not_allowed"
	CodeBadRoom          Code = "bad_room"
	CodeBadMessage       Code = "bad_message"
	CodeUnknownType      Code = "unknown_type"
	CodeBadOffer         Code = "bad_offer"
	CodeResumeExpired    Code = "resume_expired"
	CodeSuperseded       Code = "superseded"
	CodeKicked           Code = "kicked"
	CodeCallEnded        Code = "call_ended"
	CodeRoomFull         Code = "room_full"
	CodeRoomClosed       Code = "room_closed"
	CodeTurnedAway       Code = "turned_away"
	CodeNoCapacity       Code = "no_capacity"
	CodeNoNodes          Code = "no_nodes"
	CodeStoreUnavailable Code = "store_unavailable"
	CodeNodeUnreachable  Code = "node_unreachable"
	CodeNotReady         Code = "not_ready"
	CodeTooManyMessages  Code = "too_many_messages"
	CodeTooManySockets   Code = "too_many_sockets"
	CodeInternal         Code = "internal"
)

// The codes of requests.
const (
	CodeNotFound        Code = "not_found"
	CodeWrongMethod     Code = "wrong_method"
	CodeTooLarge        Code = "too_large"
	CodeUnknownPerson   Code = "unknown_person"
	CodeUnknownNode     Code = "unknown_node"
	CodeAlreadyDraining Code = "already_draining"
	CodeNotDraining     Code = "not_draining"
	CodeNoOtherNode     Code = "no_other_node"
	CodeDrainRefused    Code = "drain_refused"
	CodeUnknownRoom     Code = "unknown_room"
	CodeMoveRefused     Code = "move_refused"
)

// Meaning is one row of the table of codes in docs/API.md.
type Meaning struct {
	Code      Code
	Status    int
	Retryable bool
	Sentence  string
}

func meanings() []Meaning {
	const again, final = true, false
	return []Meaning{
		{CodeBadToken, http.StatusUnauthorized, final, "The access token is missing or not valid here. Ask the application for a new one."},
		{CodeTokenExpired, http.StatusUnauthorized, final, "The access token has expired. Ask the application for a new one."},
		{CodeNotAllowed, http.StatusForbidden, final, "The access token does not allow this. Ask the application for one that does."},
		{CodeBadRoom, http.StatusBadRequest, final, "A room name is 1 to 128 printable characters. Choose another name."},
		{CodeBadMessage, http.StatusBadRequest, final, "The message could not be understood. Check it against the protocol."},
		{CodeUnknownType, http.StatusBadRequest, final, "This server does not know that type of message. It was ignored."},
		{CodeBadOffer, http.StatusBadRequest, final, "The offer cannot be answered. Make a new connection, or check the offer against the protocol."},
		{CodeResumeExpired, http.StatusGone, final, "This session can no longer be resumed. Join again."},
		{CodeSuperseded, http.StatusConflict, final, "Another connection took over this session. Close this one."},
		{CodeKicked, http.StatusForbidden, final, "Somebody who runs this room removed you from it."},
		{CodeCallEnded, http.StatusGone, final, "Somebody who runs this room ended the call for everybody. Join again to begin another one."},
		{CodeRoomFull, http.StatusForbidden, final, "The room is full. Try again when somebody has left."},
		{CodeRoomClosed, http.StatusForbidden, final, "The room is closed. Try again when somebody who runs it has opened it."},
		{CodeTurnedAway, http.StatusForbidden, final, "Somebody who runs this room did not let you in."},
		{CodeNoCapacity, http.StatusServiceUnavailable, again, "No media node has room for this call just now. Try again in a moment."},
		{CodeNoNodes, http.StatusServiceUnavailable, again, "No media node is up. Try again in a moment."},
		{CodeStoreUnavailable, http.StatusServiceUnavailable, again, "The room cannot be placed safely just now. Try again in a moment."},
		{CodeNodeUnreachable, http.StatusServiceUnavailable, again, "The media node of this room does not answer just now. Try again in a moment."},
		{CodeNotReady, http.StatusServiceUnavailable, again, "This signaling node cannot take calls just now. Try again in a moment."},
		{CodeTooManyMessages, http.StatusTooManyRequests, again, "Too many messages. Slow down."},
		{CodeTooManySockets, http.StatusServiceUnavailable, again, "Too many connections from here. Wait a moment, then try again."},
		{CodeNotFound, http.StatusNotFound, final, "There is nothing at this address. /api/v1/openapi.json describes all requests."},
		{CodeWrongMethod, http.StatusMethodNotAllowed, final, "This address does not take that method. The header Allow has those that it takes."},
		{CodeTooLarge, http.StatusRequestEntityTooLarge, final, "The body is too large. Send less at once."},
		{CodeUnknownPerson, http.StatusNotFound, final, "Nobody like that is in the room."},
		{CodeUnknownNode, http.StatusNotFound, final, "No media node of that name is up. Name one that is."},
		{CodeAlreadyDraining, http.StatusConflict, final, "The node is draining already. Follow it, or undo it."},
		{CodeNotDraining, http.StatusConflict, final, "The node is not draining. It takes rooms."},
		{CodeNoOtherNode, http.StatusConflict, final, "There is no other node to move the rooms to. Start one first."},
		{CodeDrainRefused, http.StatusServiceUnavailable, again, "The node was restarted just now. Repeat the order."},
		{CodeUnknownRoom, http.StatusNotFound, final, "No room of that name is open. Name one that is."},
		{CodeMoveRefused, http.StatusConflict, final, "The node cannot take the room. Name another one, or none."},
		{CodeInternal, http.StatusInternalServerError, again, "Something went wrong on the server. Try again."},
	}
}

// Codes returns all codes.
func Codes() []Code {
	var all []Code
	for _, row := range meanings() {
		all = append(all, row.Code)
	}
	return all
}

// MeaningOf returns the meaning of CodeInternal for an unknown code.
func MeaningOf(code Code) Meaning {
	rows := meanings()
	for _, row := range rows {
		if row.Code == code {
			return row
		}
	}
	return rows[len(rows)-1]
}
