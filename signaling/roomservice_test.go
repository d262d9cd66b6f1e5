package signaling

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// twirp posts to a method of RoomService, and returns the status and the code of a refusal.
func (e *signalingNode) twirp(method, token, contentType, body string) (status int, code, answer string) {
	e.rig.t.Helper()
	request, err := http.NewRequest(http.MethodPost, "http://"+e.addr+"/twirp/livekit.RoomService/"+method, strings.NewReader(body))
	if err != nil {
		e.rig.t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	status, answer, _ = e.rig.do(request)
	var refusal struct{ Code, Msg string }
	if status != http.StatusOK && (json.Unmarshal([]byte(answer), &refusal) != nil || refusal.Msg == "") {
		e.rig.t.Errorf("%s is refused by %d %.300s, which is no error of Twirp's", method, status, answer)
	}
	return status, refusal.Code, answer
}

// TestRoomServiceRefuses what a stranger, a person's token, or a careless program sends, each with Twirp's code.
func TestRoomServiceRefuses(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	creator, lister := r.mint(access.Grant{RoomCreate: true}, time.Hour), r.mint(access.Grant{RoomList: true}, time.Hour)
	admin := r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour)
	person := access.Everything("ada", "lobby")
	person.RoomCreate = true
	const text = "application/json"
	for name, c := range map[string]struct {
		method, token, contentType, body string
		status                           int
		code                             string
	}{
		"no token":                  {"ListRooms", "", text, "{}", 401, "unauthenticated"},
		"no grant":                  {"ListRooms", creator, text, "{}", 401, "unauthenticated"},
		"a forged token":            {"ListRooms", lister + "x", text, "{}", 401, "unauthenticated"},
		"a person's token":          {"DeleteRoom", r.mint(person, time.Hour), text, `{"room":"lobby"}`, 401, "unauthenticated"},
		"a token of another room":   {"ListParticipants", admin, text, `{"room":"other"}`, 401, "unauthenticated"},
		"a creator of another room": {"CreateRoom", r.mint(access.Grant{RoomCreate: true, Room: "lobby"}, time.Hour), text, `{"name":"other"}`, 401, "unauthenticated"},
		"no JSON":                   {"CreateRoom", creator, text, `{"name":`, 400, "malformed"},
		"no protobuf":               {"CreateRoom", creator, "application/protobuf", "\xff\xff", 400, "malformed"},
		"too much":                  {"CreateRoom", creator, text, `{"name":"` + strings.Repeat("x", 70<<10) + `"}`, 400, "invalid_argument"},
		"much metadata":             {"CreateRoom", creator, text, `{"name":"x","metadata":"` + strings.Repeat("x", 5<<10) + `"}`, 400, "invalid_argument"},
		"egress":                    {"CreateRoom", creator, text, `{"name":"x","egress":{"room":{}}}`, 501, "unimplemented"},
		"no name":                   {"CreateRoom", creator, text, `{}`, 400, "invalid_argument"},
		"no room":                   {"DeleteRoom", creator, text, `{"room":"nothing"}`, 404, "not_found"},
		"a method that is none":     {"Nothing", creator, text, `{}`, 404, "bad_route"},
		"another service":           {"../livekit.Egress/ListEgress", creator, text, `{}`, 404, "bad_route"},
		"another type":              {"CreateRoom", creator, "text/plain", `{}`, 404, "bad_route"},
		"data for nobody":           {"SendData", admin, text, `{"room":"lobby","data":"aGk="}`, 404, "not_found"},
		"much data":                 {"SendData", admin, text, `{"room":"lobby","data":"` + strings.Repeat("a", 24<<10) + `"}`, 400, "invalid_argument"},
		"a method of people":        {"PerformRpc", admin, text, `{"room":"lobby"}`, 501, "unimplemented"},
	} {
		if status, code, answer := e.twirp(c.method, c.token, c.contentType, c.body); status != c.status || code != c.code {
			t.Errorf("%s: %s is answered %d %.300s, want %d %s", name, c.method, status, answer, c.status, c.code)
		}
	}
	if status, body, _ := e.get("/twirp/livekit.RoomService/ListRooms", lister); status != http.StatusNotFound || !strings.Contains(body, "bad_route") {
		t.Errorf("GET is answered %d %s", status, body)
	}
}

// TestAMadeRoomIsListed in JSON with the names of the protobuf messages, until it is ended.
func TestAMadeRoomIsListed(t *testing.T) {
	r := newCapped(t)
	e := r.signalingNode(nil)
	creator, lister := r.mint(access.Grant{RoomCreate: true}, time.Hour), r.mint(access.Grant{RoomList: true}, time.Hour)
	const text = "application/json; charset=utf-8"
	if status, _, answer := e.twirp("CreateRoom", creator, text, `{"name":"Hall  1","max_participants":2,"metadata":"m","unknown":1}`); status != http.StatusOK {
		t.Fatalf("the room is not made: %d %s", status, answer)
	}
	if status, _, answer := e.twirp("CreateRoom", creator, text, `{"name":"Hall 1","emptyTimeout":60}`); status != http.StatusOK {
		t.Fatalf("the room is not changed: %d %s", status, answer)
	}
	var list struct{ Rooms []map[string]any }
	_, _, answer := e.twirp("ListRooms", lister, text, `{"names":["Hall 1"]}`)
	if err := json.Unmarshal([]byte(answer), &list); err != nil || len(list.Rooms) != 1 {
		t.Fatalf("the list is %s, %v", answer, err)
	}
	room := list.Rooms[0]
	if room["name"] != "Hall 1" || room["metadata"] != "m" || room["max_participants"] != 2.0 || room["empty_timeout"] != 60.0 || room["departure_timeout"] != 20.0 || room["num_participants"] != 0.0 {
		t.Errorf("the room is %v", room)
	}
	if status, _, answer := e.twirp("DeleteRoom", creator, text, `{"room":"Hall 1"}`); status != http.StatusOK {
		t.Errorf("the room is not ended: %d %s", status, answer)
	}
	if _, _, answer := e.twirp("ListRooms", lister, text, `{}`); strings.Contains(answer, "Hall") {
		t.Errorf("after its end the list is %s", answer)
	}
}
