package access

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestARenewedTokenContinuesASessionAndNothingElse(t *testing.T) {
	keys, err := ParseKeyring("app:" + strings.Repeat("s", minSecretCharacters))
	if err != nil {
		t.Fatal(err)
	}
	original, err := keys.Mint("", Everything("ann", "lobby"), -leeway/2) // expired, but within the leeway
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := keys.Renew(original, "first", "before")
	if err != nil {
		t.Fatal(err)
	}
	if renewed, err = keys.Renew(renewed, "second", "state"); err != nil {
		t.Fatal(err)
	}
	if _, err := keys.Verify(renewed); !errors.Is(err, ErrUnfit) {
		t.Errorf("a renewed token is taken for an access token: %v", err)
	}
	plain, resume, state, err := keys.Unfold(renewed)
	if err != nil || resume != "second" || state != "state" {
		t.Fatalf("unfolded %q, %q, %v", resume, state, err)
	}
	grant, err := keys.Verify(plain)
	if err != nil || grant.Identity != "ann" || grant.Room != "lobby" || time.Until(grant.Expires) > 0 {
		t.Errorf("the original is %+v, %v: it must not live longer", grant, err)
	}
	if plain, resume, state, err := keys.Unfold(original); plain != original || resume+state != "" || err != nil {
		t.Errorf("an access token is unfolded to %q, %q, %v", plain, resume, err)
	}
	if _, _, _, err := keys.Unfold(renewed + "x"); err == nil {
		t.Error("a forged token is unfolded")
	}
	if long, err := keys.Renew(original, strings.Repeat("r", maxTokenBytes), ""); long != "" || err != nil {
		t.Errorf("a token of %d bytes, %v", len(long), err)
	}
}
