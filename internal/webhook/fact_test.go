package webhook

import (
	"strings"
	"testing"
)

func fields() map[string]string {
	return map[string]string{
		"kind": "track_published", "at": "1795783230243", "sid": "RM_1", "began": "1795783200000", "people": "2",
		"peer": "p1", "row": "ada\n1795783210000 Ada L.", "source": Screen, "number": "3",
	}
}

func TestBodyIsLiveKits(t *testing.T) {
	f, err := Read("hall", "17", fields())
	if err != nil {
		t.Fatal(err)
	}
	body, err := f.Body()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"event":"track_published","room":{"sid":"RM_1","name":"hall","creationTime":"1795783200","creationTimeMs":"1795783200000","numParticipants":2},` +
		`"participant":{"sid":"PA_p1","identity":"ada","name":"Ada L.","state":"ACTIVE","joinedAt":"1795783210","joinedAtMs":"1795783210000"},` +
		`"track":{"sid":"TR_Sp1"`
	if !strings.HasPrefix(string(body), want) || !strings.Contains(string(body), `"type":"VIDEO","source":"SCREEN_SHARE"},"id":"EV_`) || !strings.HasSuffix(string(body), `"createdAt":"1795783230"}`) {
		t.Errorf("%s", body)
	}
}

// Who tells a fact, when, and with how many people does not change its id; anything that makes it another fact does.
func TestID(t *testing.T) {
	one, err := Read("hall", "17", fields())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(map[string]string){
		"kind": func(f map[string]string) { f["kind"] = "track_unpublished" }, "sid": func(f map[string]string) { f["sid"] = "RM_2" },
		"peer": func(f map[string]string) { f["peer"] = "p2" }, "number": func(f map[string]string) { f["number"] = "4" },
		"source": func(f map[string]string) { f["source"] = Camera }, "epoch": func(f map[string]string) { f["epoch"] = "9" },
	} {
		changed := fields()
		change(changed)
		if other, err := Read("hall", "17", changed); err != nil || other.ID() == one.ID() {
			t.Errorf("another %s: %v, and the id is the same", name, err)
		}
	}
	again := fields()
	again["at"], again["people"] = "1795783239999", "7"
	if same, err := Read("hall", "99", again); err != nil || same.ID() != one.ID() {
		t.Errorf("the same fact has another id: %v", err)
	}
}

func TestCheck(t *testing.T) {
	for _, good := range []string{"https://app.example.org/webhook", "http://10.0.0.1:8080", "https://u:p@app.example.org/?a=b"} {
		if err := Check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "app.example.org", "ftp://x/", "https://", "https://u:secret@/x", "https://x/#y", "http://[::1", "https://u:secret@%zz"} {
		if err := Check(bad); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("room_started", "1795783230243", "1795783230243", "2", "p1", "ada\n17 Ada", "1")
	f.Add("participant_left", "0", "-1", "0", "p", "\nada\n1 ", "")
	f.Fuzz(func(t *testing.T, kind, at, began, people, peer, row, number string) {
		fact, err := Read("hall", "17", map[string]string{"kind": kind, "at": at, "began": began, "people": people, "peer": peer, "row": row, "number": number})
		if err != nil {
			return
		}
		if _, err := fact.Body(); err != nil || fact.ID() == "" {
			t.Errorf("%+v: %v", fact, err)
		}
	})
}
