package access

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	testKey    = "APIdev"
	testSecret = "0123456789abcdef0123456789abcdef"
)

func keyring(t testing.TB) *Keyring {
	t.Helper()
	return keysOf(t, " other:"+strings.Repeat("z", 32)+", "+testKey+":"+testSecret+",")
}

func keysOf(t testing.TB, text string) *Keyring {
	t.Helper()
	ring, err := ParseKeyring(text)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestVerifyReturnsWhatMintGranted(t *testing.T) {
	want := Everything("ada", "lobby")
	want.Name, want.Metadata, want.CanSubscribe = "Ada", `{"seat":7}`, false
	want.Attributes = map[string]string{"team": "blue", "seat": "7"}
	want.RoomCreate, want.RoomList, want.ClusterAdmin, want.CanRename, want.Sources = true, true, true, true, Microphone|Screen
	before := time.Now().Add(59 * time.Second) // a token's end has whole seconds
	token, err := Mint(testKey, testSecret, want, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got, err := keyring(t).Verify(token)
	if got.Key != testKey || got.Expires.Before(before) || got.Expires.After(before.Add(time.Minute)) {
		t.Errorf("the token is of key %q and ends %v", got.Key, got.Expires)
	}
	if got = plain(got); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("Verify = %+v, %v, want %+v", got, err, want)
	}
}

// plain is a grant without what Mint adds.
func plain(g Grant) Grant {
	g.Key, g.Expires = "", time.Time{}
	return g
}

// TestVerifyReadsTokensOfOthers builds a token the way LiveKit's servers do,
// with claims that we do not know.
func TestVerifyReadsTokensOfOthers(t *testing.T) {
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": testKey, "sub": "ada", "name": "Ada", "nbf": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"video":  map[string]any{"room": "lobby", "roomJoin": true, "canPublishSources": []string{"camera", "screen_share_audio"}, "ingressAdmin": true},
		"sip":    map[string]any{"admin": true},
		"sha256": "", "kind": "standard",
	}).SignedString([]byte(testSecret))
	if err != nil {
		t.Fatal(err)
	}
	want := Everything("ada", "lobby")
	want.Name, want.Sources = "Ada", Camera|ScreenAudio
	if got, err := keyring(t).Verify(token); err != nil || !reflect.DeepEqual(plain(got), want) {
		t.Fatalf("Verify = %+v, %v, want %+v", got, err, want)
	}
}

func TestVerifyRefuses(t *testing.T) {
	now := time.Now()
	good := jwt.MapClaims{"iss": testKey, "sub": "ada", "exp": now.Add(time.Hour).Unix(), "video": map[string]any{"roomJoin": true}}
	with := func(change jwt.MapClaims) jwt.MapClaims {
		all := jwt.MapClaims{}
		for _, m := range []jwt.MapClaims{good, change} {
			maps.Copy(all, m)
		}
		return all
	}
	sign := func(method jwt.SigningMethod, key any, c jwt.MapClaims) string {
		token, err := jwt.NewWithClaims(method, c).SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	secret := []byte(testSecret)
	noExp := with(nil)
	delete(noExp, "exp")
	tampered := sign(jwt.SigningMethodHS256, secret, good)
	parts := strings.Split(tampered, ".")
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(`{"iss":%q,"sub":"root","exp":%d}`, testKey, now.Add(time.Hour).Unix())))
	for name, tc := range map[string]struct {
		token string
		want  error
	}{
		"nothing":              {"", ErrMissing},
		"not a token":          {"hello", ErrForged},
		"too long":             {strings.Repeat("x", maxTokenBytes+1), ErrUnfit},
		"another secret":       {sign(jwt.SigningMethodHS256, []byte(strings.Repeat("y", 32)), good), ErrForged},
		"another payload":      {strings.Join(parts, "."), ErrForged},
		"no signature":         {strings.Join(parts[:2], ".") + ".", ErrForged},
		"algorithm none":       {sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good), ErrForged},
		"algorithm HS512":      {sign(jwt.SigningMethodHS512, secret, good), ErrForged},
		"unknown key":          {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"iss": "stranger"})), ErrUnknownKey},
		"no key":               {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"iss": ""})), ErrUnknownKey},
		"the other key's name": {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"iss": "other"})), ErrForged},
		"expired":              {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"exp": now.Add(-leeway - time.Minute).Unix()})), ErrExpired},
		"without expiry":       {sign(jwt.SigningMethodHS256, secret, noExp), ErrUnfit},
		"not yet":              {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"nbf": now.Add(leeway + time.Minute).Unix()})), ErrUnfit},
		"huge metadata":        {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"metadata": strings.Repeat("m", maxMetadataBytes+1)})), ErrUnfit},
		"huge attributes":      {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"attributes": map[string]string{"a": strings.Repeat("m", maxAttributesBytes)}})), ErrUnfit},
		"attributes of lists":  {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"attributes": map[string][]string{"a": {"b"}}})), ErrUnfit},
		"an escape":            {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"sub": "ada\x1b[2J"})), ErrUnfit},
		"another direction":    {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"sub": "ada\u202eeve"})), ErrUnfit},
		"nothing to see":       {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"sub": "ada\u200b"})), ErrUnfit},
		"a line break":         {sign(jwt.SigningMethodHS256, secret, with(jwt.MapClaims{"sub": "ada\nlevel=ERROR"})), ErrUnfit},
		"expired and forged":   {sign(jwt.SigningMethodHS256, []byte("wrong"), with(jwt.MapClaims{"exp": 1})), ErrForged},
	} {
		if g, err := keyring(t).Verify(tc.token); !errors.Is(err, tc.want) || !reflect.DeepEqual(g, Grant{}) {
			t.Errorf("%s: Verify = %+v, %v, want %v", name, g, err, tc.want)
		}
	}
}

func TestForRoom(t *testing.T) {
	anywhere := Everything("ada", "")
	watcher := Everything("ada", "lobby")
	watcher.RoomJoin = false
	for name, tc := range map[string]struct {
		grant Grant
		asked string
		room  string
		err   error
	}{
		"the token's room":    {Everything("ada", "lobby"), "", "lobby", nil},
		"both agree":          {Everything("ada", "lobby"), "lobby", "lobby", nil},
		"both differ":         {Everything("ada", "lobby"), "attic", "", ErrOtherRoom},
		"any room":            {anywhere, "attic {1}/é", "attic {1}/é", nil},
		"no room":             {anywhere, "", "", ErrBadRoom},
		"a line break":        {anywhere, "a\nb", "", ErrBadRoom},
		"an invisible letter": {anywhere, "a\u200bb", "", ErrBadRoom},
		"not UTF-8":           {anywhere, "a\xff", "", ErrBadRoom},
		"128 characters":      {anywhere, strings.Repeat("é", 128), strings.Repeat("é", 128), nil},
		"129 characters":      {anywhere, strings.Repeat("é", 129), "", ErrBadRoom},
		"no roomJoin":         {watcher, "lobby", "", ErrNotJoin},
		"nobody":              {Everything("", "lobby"), "lobby", "", ErrNoIdentity},
	} {
		if room, err := tc.grant.ForRoom(tc.asked); string(room) != tc.room || !errors.Is(err, tc.err) {
			t.Errorf("%s: ForRoom = %q, %v, want %q, %v", name, room, err, tc.room, tc.err)
		}
	}
}

// TestAGrantMeansWhatLiveKitMeans reads video grants as LiveKit's servers write them.
func TestAGrantMeansWhatLiveKitMeans(t *testing.T) {
	type video = map[string]any
	for name, tc := range map[string]struct {
		video                    video
		publish, subscribe, data bool
		sources                  Sources
	}{
		"nothing said":             {video{}, true, true, true, 0},
		"no publishing":            {video{"canPublish": false}, false, true, false, 0},
		"chat only":                {video{"canPublish": false, "canPublishData": true}, false, true, true, 0},
		"no chat":                  {video{"canPublishData": false}, true, true, false, 0},
		"no sources":               {video{"canPublishSources": []string{}}, true, true, true, 0},
		"two sources":              {video{"canPublishSources": []string{"MICROPHONE", "screen_share"}}, true, true, true, Microphone | Screen},
		"the sound of a screen":    {video{"canPublishSources": []string{"screen_share_audio"}}, true, true, true, ScreenAudio},
		"sources, no publishing":   {video{"canPublish": false, "canPublishSources": []string{"camera"}}, false, true, false, Camera},
		"hidden":                   {video{"hidden": true}, false, true, false, 0},
		"hidden, publishes":        {video{"hidden": true, "canPublish": true}, false, false, false, 0},
		"hidden, chats":            {video{"hidden": true, "canPublishData": true}, false, false, false, 0},
		"a source that nobody has": {video{"canPublishSources": []string{"smell"}}, false, false, false, 0},
	} {
		tc.video["roomJoin"], tc.video["room"] = true, "lobby"
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
			"iss": testKey, "sub": "ada", "exp": time.Now().Add(time.Hour).Unix(), "video": tc.video,
		}).SignedString([]byte(testSecret))
		if err != nil {
			t.Fatal(err)
		}
		got, err := keyring(t).Verify(token)
		if refused := !tc.subscribe; refused != errors.Is(err, ErrUnfit) {
			t.Errorf("%s: %v", name, err)
		}
		if got.CanPublish != tc.publish || got.CanSubscribe != tc.subscribe || got.CanPublishData != tc.data || got.Sources != tc.sources {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhoRunsARoomAndWhoSeesTheCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		grant                          Grant
		lobby, attic, cluster, changes error
	}{
		"nobody":                  {Everything("ada", "lobby"), ErrNotAdmin, ErrNotAdmin, ErrNotCluster, ErrNotClusterAdmin},
		"who runs the lobby":      {Grant{RoomAdmin: true, Room: "lobby"}, nil, ErrNotAdmin, ErrNotCluster, ErrNotClusterAdmin},
		"roomAdmin of no room":    {Grant{RoomAdmin: true}, ErrNotAdmin, ErrNotAdmin, ErrNotCluster, ErrNotClusterAdmin},
		"roomList":                {Grant{RoomList: true}, ErrNotAdmin, ErrNotAdmin, nil, ErrNotClusterAdmin},
		"clusterAdmin":            {Grant{ClusterAdmin: true}, ErrNotAdmin, ErrNotAdmin, ErrNotCluster, nil},
		"clusterAdmin of a room":  {Grant{ClusterAdmin: true, Room: "lobby"}, ErrNotAdmin, ErrNotAdmin, ErrNotCluster, ErrNotClusterAdmin},
		"roomList, and the lobby": {Grant{RoomList: true, RoomAdmin: true, Room: "lobby"}, nil, ErrNotAdmin, ErrNotCluster, ErrNotClusterAdmin},
		"the operator":            {Operator("root"), nil, nil, nil, nil},
	} {
		if err := tc.grant.ForRoomAdmin("lobby"); !errors.Is(err, tc.lobby) {
			t.Errorf("%s, of the lobby: %v", name, err)
		}
		if err := tc.grant.ForRoomAdmin("attic"); !errors.Is(err, tc.attic) {
			t.Errorf("%s, of the attic: %v", name, err)
		}
		if err := tc.grant.ForCluster(); !errors.Is(err, tc.cluster) {
			t.Errorf("%s, of the cluster: %v", name, err)
		}
		if err := tc.grant.ForClusterAdmin(); !errors.Is(err, tc.changes) {
			t.Errorf("%s, changes to the cluster: %v", name, err)
		}
	}
}

func TestParseKeyringRefuses(t *testing.T) {
	for _, text := range []string{
		"", ",", "key", ":" + testSecret, "key:", "key:" + testSecret[1:], "key:" + testSecret + ",key:" + testSecret + "1",
	} {
		_, err := ParseKeyring(text)
		if !errors.Is(err, errBadKeys) {
			t.Errorf("ParseKeyring(%q) = %v, want ErrBadKeys", text, err)
		} else if strings.Contains(err.Error(), testSecret[1:]) {
			t.Errorf("ParseKeyring(%q) shows a secret: %v", text, err)
		}
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	const key = "fedcba9876543210fedcba9876543210"
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	one := keysOf(t, testKey+":"+key)
	for _, v := range []any{keyring(t), *keyring(t), one, *one} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			fmt.Fprintf(&out, verb, v)
		}
		log.Info("configured", "value", v)
	}
	for _, secret := range []string{testSecret, key, fmt.Sprintf("%x", testSecret), fmt.Sprintf("%x", key), fmt.Sprintf("%d", []byte(key))} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("%q is in %s", secret, out.String())
		}
	}
}

func session() Session {
	return Session{Key: testKey, Until: time.Now().Add(30 * 24 * time.Hour).Unix(), Room: "lobby {1}", Peer: "p-1", Identity: "ada", Name: "Ada", Metadata: "m", CanPublish: true}
}

func TestResumeTokensLiveForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := session()
		token, err := keyring(t).Seal(want)
		if err != nil {
			t.Fatal(err)
		}
		other := keyring(t)                    // another node of the same cluster
		<-time.After(ResumeLife - time.Second) // in the bubble's time
		got, err := other.Open(token)
		want.Expires, want.Mark = got.Expires, other.Mark(testKey)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("Open = %+v, %v, want %+v", got, err, want)
		}
		<-time.After(3 * time.Second)
		if _, err := other.Open(token); !errors.Is(err, ErrExpired) {
			t.Fatalf("Open a day later = %v, want ErrExpired", err)
		}
	})
}

func TestResumeTokensEndWithTheRightToResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := keyring(t)
		s := session()
		s.Until = time.Now().Add(time.Hour).Unix()
		for range 3 { // however often it is renewed
			token, err := r.Seal(s)
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(19 * time.Minute)
			if s, err = r.Open(token); err != nil || s.Expires != s.Until {
				t.Fatalf("Open = %+v, %v", s, err)
			}
		}
		token, err := r.Seal(s)
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(4 * time.Minute)
		if _, err := r.Open(token); !errors.Is(err, ErrExpired) {
			t.Fatalf("Open after the end = %v, want ErrExpired", err)
		}
		s.Until = 0 // as builds before this one made them
		if token, err = r.Seal(s); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Open(token); !errors.Is(err, ErrExpired) {
			t.Fatalf("Open without an end = %v, want ErrExpired", err)
		}
	})
}

func TestAMarkIsOfAKeyAndItsSecret(t *testing.T) {
	same, err := ParseKeyring(testKey + ":" + testSecret)
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := ParseKeyring(testKey + ":" + strings.Repeat("n", 32))
	if err != nil {
		t.Fatal(err)
	}
	mark := keyring(t).Mark(testKey)
	if mark == "" || mark != same.Mark(testKey) || mark == rotated.Mark(testKey) || mark == keyring(t).Mark("other") {
		t.Errorf("marks %q, %q, %q, %q", mark, same.Mark(testKey), rotated.Mark(testKey), keyring(t).Mark("other"))
	}
	if got := same.Mark("other"); got != "" {
		t.Errorf("a key that is not there has the mark %q", got)
	}
}

func TestTheLongestSessionFitsItsToken(t *testing.T) {
	long := strings.Repeat("k", 100)
	r := keysOf(t, long+":"+testSecret)
	want := Session{
		Key: long, Mark: r.Mark(long), Until: time.Now().Add(time.Hour).Unix(), Began: 1 << 52,
		Room: ring.RoomID(strings.Repeat("😀", maxRoomCharacters)), Peer: "p-1", Identity: strings.Repeat("<", MaxIdentityBytes),
		Name: strings.Repeat("&", maxNameBytes), Metadata: strings.Repeat("\x01", maxMetadataBytes), Attributes: map[string]string{"a": strings.Repeat("\x01", maxAttributesBytes-1)}, CanPublish: true, CanSubscribe: true, Epoch: 1 << 52,
	}
	token, err := r.Seal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Open(token)
	got.Expires = 0
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("a token of %d bytes: %v", len(token), err)
	}
}

func TestOpenRefusesEveryChange(t *testing.T) {
	r := keyring(t)
	token, err := r.Seal(session())
	if err != nil {
		t.Fatal(err)
	}
	for i := range token {
		changed := []byte(token)
		changed[i] ^= 1
		// Where the change meets the key's name or mark, or the version, it is of a key that is none here.
		if s, err := r.Open(string(changed)); !errors.Is(err, ErrForged) && !errors.Is(err, ErrUnknownKey) {
			t.Fatalf("Open with byte %d changed = %+v, %v, want ErrForged", i, s, err)
		}
	}
	for _, keys := range []string{"another:" + testSecret, testKey + ":" + strings.Repeat("n", 32)} {
		if _, err := keysOf(t, keys).Open(token); !errors.Is(err, ErrUnknownKey) {
			t.Fatalf("Open with another key = %v, want ErrUnknownKey", err)
		}
	}
	if _, err := r.Open("hfr1" + token[4:]); !errors.Is(err, ErrUnknownKey) {
		t.Fatalf("Open of another version's = %v, want ErrUnknownKey", err)
	}
	if _, err := r.Seal(Session{Key: "none"}); !errors.Is(err, ErrUnknownKey) {
		t.Fatalf("Seal with a key that is none = %v, want ErrUnknownKey", err)
	}
}

// signedWith tells whether text ends with the HMAC-SHA256 (RFC 7515, A.1) of all
// before its last dot. The fuzz targets ask it, and do not compare with the token
// that they made: each of their processes makes its own, of its own second.
func signedWith(secret, text string) bool {
	cut := max(strings.LastIndexByte(text, '.'), 0)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text[:cut]))
	return text[cut:] == "."+base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func FuzzVerify(f *testing.F) {
	ring := keyring(f)
	for _, secret := range []string{testSecret, strings.Repeat("f", 32)} {
		token, err := Mint(testKey, secret, Everything("ada", "lobby"), time.Hour)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(token)
		f.Add(token[:len(token)-3] + "\n" + token[len(token)-3:])
	}
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		_, err := ring.Verify(text)
		if err == nil && !signedWith(testSecret, text) {
			t.Fatalf("Verify(%q) accepted what nobody signed", text)
		}
		if err != nil && !errors.Is(err, ErrForged) && !errors.Is(err, ErrUnknownKey) && !errors.Is(err, ErrExpired) && !errors.Is(err, ErrUnfit) {
			t.Fatalf("Verify(%q) = %v", text, err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	r := keyring(f)
	for _, by := range []*Keyring{r, keysOf(f, testKey+":"+strings.Repeat("n", 32))} {
		token, err := by.Seal(session())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(token)
		f.Add(token[:len(token)-3] + "\r\n" + token[len(token)-3:])
	}
	f.Add("hfr2.e30.e30")
	derived, err := hkdf.Key(sha256.New, []byte(testSecret), nil, resumeLabel, 32)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := r.Open(text)
		if err == nil && !signedWith(string(derived), text) {
			t.Fatalf("Open(%q) accepted what nobody sealed", text)
		}
		if err != nil && !errors.Is(err, ErrForged) && !errors.Is(err, ErrUnknownKey) && !errors.Is(err, ErrExpired) {
			t.Fatalf("Open(%q) = %v", text, err)
		}
	})
}

func TestATokenSaysTheSizeOfTheRoomThatItNames(t *testing.T) {
	for _, c := range []struct {
		room       ring.RoomID
		says, want int
	}{{"lobby", 40, 40}, {"lobby", 5000, maxExpectedSize}, {"lobby", -1, 0}, {"", 40, 0}} {
		g := Everything("ada", c.room)
		g.ExpectedSize = c.says
		token, err := Mint(testKey, testSecret, g, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := keyring(t).Verify(token); err != nil || got.ExpectedSize != c.want {
			t.Errorf("room %q, %d people: read as %d, %v, want %d", c.room, c.says, got.ExpectedSize, err, c.want)
		}
	}
}

func TestKeysAreReplacedWhileTheyAreUsed(t *testing.T) {
	ring := keysOf(t, testKey+":"+testSecret)
	mint := func(key string) string {
		t.Helper()
		token, err := ring.Mint(key, Everything("ada", "lobby"), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	first := mint("")
	if err := ring.Replace(testKey + ":" + testSecret + "\r\nnext:" + strings.Repeat("n", 32) + "\n"); err != nil {
		t.Fatal(err)
	}
	second := mint("next")
	for _, token := range []string{first, second} {
		if _, err := ring.Verify(token); err != nil {
			t.Fatal(err)
		}
	}
	if err := ring.Replace("next:short"); !errors.Is(err, errBadKeys) {
		t.Errorf("Replace = %v", err)
	}
	if err := ring.Replace("next:" + strings.Repeat("n", 32)); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Verify(first); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("a token of the key that was dropped: %v", err)
	}
	if _, err := ring.Verify(second); err != nil {
		t.Error(err)
	}
}
