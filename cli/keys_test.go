package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/node"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// TestAClusterKeyIsRotatedStepByStep: the file always has keys that a node can read, and its user alone can read it.
func TestAClusterKeyIsRotatedStepByStep(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.key")
	step := func(want int, args ...string) []string {
		t.Helper()
		code, out, said := exec(t, nil, append([]string{"keys"}, append(args, file)...)...)
		if code != exitDone {
			t.Fatalf("%v: %s", args, said)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		text, err := node.ReadKeyFile(file)
		if err != nil {
			t.Fatal(err)
		}
		key, err := control.ParseClusterKey(text)
		if err != nil || len(key.Marks()) != want || lines[0] != key.Marks()[0]+" (used)" || len(lines) != want {
			t.Fatalf("%v: %q, %v, %v", args, lines, key.Marks(), err)
		}
		for secret := range strings.FieldsSeq(text) {
			if strings.Contains(out, secret) {
				t.Fatalf("%v shows a key", args)
			}
		}
		return key.Marks()
	}
	first := step(1, "new")
	both := step(2, "new")
	if both[0] != first[0] {
		t.Errorf("a new key is used at once")
	}
	if code, _, said := exec(t, nil, "keys", "new", file); code != exitUsage || !strings.Contains(said, "2 at most") {
		t.Errorf("a third key: %d, %s", code, said)
	}
	used := step(2, "use")
	if used[0] != both[1] || used[1] != both[0] {
		t.Errorf("used %v, want %v the other way round", used, both)
	}
	if last := step(1, "drop"); last[0] != both[1] {
		t.Errorf("left is %v of %v", last, both)
	}
	if code, _, _ := exec(t, nil, "keys", "drop", file); code != exitUsage {
		t.Errorf("the last key is dropped: %d", code)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
}

// A node of another user goes on reading a file that root changes.
func TestAFileOfKeysKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	file := filepath.Join(t.TempDir(), "cluster.key")
	if code, _, said := exec(t, nil, "keys", "new", file); code != exitDone {
		t.Fatal(said)
	}
	const nobody = 65534
	if err := os.Chown(file, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if code, _, said := exec(t, nil, "keys", "new", file); code != exitDone {
		t.Fatal(said)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t); owner.Uid != nobody || owner.Gid != nobody || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is of %d:%d, %v", owner.Uid, owner.Gid, info.Mode())
	}
}

// Who may write the directory could else have root give a file of keys the rights of another file.
func TestALinkToAFileOfKeysIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster.key")
	if code, _, said := exec(t, nil, "keys", "new", file); code != exitDone {
		t.Fatal(said)
	}
	link := file + ".link"
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if code, _, said := exec(t, nil, "keys", "new", link); code != exitUsage || !strings.Contains(said, "symbolic link") {
		t.Errorf("a change by a link ends with %d: %s", code, said)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", info, err)
	}
	if code, _, said := exec(t, nil, "keys", "show", link); code != exitDone {
		t.Errorf("a link cannot be shown: %d, %s", code, said)
	}
}

func TestAPIKeysAreRotated(t *testing.T) {
	file := filepath.Join(t.TempDir(), "api.keys")
	for _, row := range []struct{ args, want string }{
		{"new --api one", "one"}, {"new --api two", "one two"}, {"drop --api one", "two"},
	} {
		code, out, said := exec(t, nil, slices.Concat([]string{"keys"}, strings.Fields(row.args), []string{file})...)
		if code != exitDone || strings.Join(strings.Fields(out), " ") != row.want {
			t.Fatalf("%s: %q, %s", row.args, out, said)
		}
	}
	for _, args := range []string{"drop --api two", "drop --api three", "use --api two", "new --api two"} {
		if code, _, _ := exec(t, nil, slices.Concat([]string{"keys"}, strings.Fields(args), []string{file})...); code != exitUsage {
			t.Errorf("%s ends with %d", args, code)
		}
	}
	code, out, said := exec(t, nil, "token", "--identity", "ada", "--api-keys-file", file)
	text, err := node.ReadKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := access.ParseKeyring(text)
	if err != nil {
		t.Fatal(err)
	}
	if grant, err := keys.Verify(strings.TrimSpace(out)); code != exitDone || err != nil || grant.Key != "two" {
		t.Errorf("a token of the file's key: %+v, %v, %s", grant, err, said)
	}
}
