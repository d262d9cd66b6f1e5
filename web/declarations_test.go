package web_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/build"
	"github.com/holdfast-rtc/holdfast/internal/tool"
)

const library = "static/holdfast"

var update = flag.Bool("update", false, "write the declarations of the library anew")

// TestDeclarations: static/holdfast/types has what tsc reads out of the library's JSDoc. Whoever changes the library runs
// go test ./web -run TestDeclarations -update.
func TestDeclarations(t *testing.T) {
	made := declarations(t)
	folder := filepath.Join(library, "types")
	if *update {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range made {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
		kept, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(kept) != made[file.Name()] {
			t.Errorf("%s is not what tsc makes of the library: run go test ./web -run TestDeclarations -update", file.Name())
		}
	}
	if want := slices.Sorted(maps.Keys(made)); !slices.Equal(names, want) {
		t.Errorf("%s has %v, want %v: run go test ./web -run TestDeclarations -update", folder, names, want)
	}
}

var (
	refersTo = regexp.MustCompile(`(?:from |import\()["']\./([\w-]+)\.js["']`)
	// A member that @internal marks, with its comment. The declarations of tsc have one member a line.
	internalMember = regexp.MustCompile(`(?m)^    /\*\*(?:[^*]|\*[^/])*@internal(?:[^*]|\*[^/])*\*/\n    (constructor)?.*;\n`)
)

// declarations has what tsc makes of index.js and of what its types name, without the members that @internal marks.
func declarations(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), tool.Find(t, "tsc"), "-p", "tsconfig.types.json", "--outDir", dir).CombinedOutput(); err != nil {
		t.Fatalf("tsc -p web/tsconfig.types.json: %v\n%s", err, out)
	}
	made := map[string]string{}
	for todo := []string{"index"}; len(todo) > 0; todo = todo[1:] {
		name := todo[0] + ".d.ts"
		if _, done := made[name]; done {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		text := internalMember.ReplaceAllStringFunc(string(content), func(member string) string {
			if internalMember.FindStringSubmatch(member)[1] != "" {
				return "    private constructor();\n"
			}
			return ""
		})
		made[name] = text
		for _, found := range refersTo.FindAllStringSubmatch(text, -1) {
			todo = append(todo, found[1])
		}
	}
	return made
}

// TestTypeScript: a program that uses everything that the library gives is strict TypeScript, and what is wrong in it is told.
func TestTypeScript(t *testing.T) {
	compile := func(program string) (string, error) {
		dir := t.TempDir()
		types, err := filepath.Abs(filepath.Join(library, "types", "index.d.ts"))
		if err != nil {
			t.Fatal(err)
		}
		config := map[string]any{"files": []string{"app.ts"}, "compilerOptions": map[string]any{
			"strict": true, "noEmit": true, "target": "es2022", "module": "es2022", "moduleResolution": "node", "types": []string{},
			"lib": []string{"es2022", "dom", "dom.iterable"}, "paths": map[string][]string{"@holdfast-rtc/holdfast": {types}},
		}}
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		for name, content := range map[string]string{"tsconfig.json": string(text), "app.ts": program} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.CommandContext(t.Context(), tool.Find(t, "tsc"), "-p", dir).CombinedOutput()
		return string(out), err
	}
	content, err := os.ReadFile("testdata/typescript/app.ts")
	if err != nil {
		t.Fatal(err)
	}
	program := string(content)
	if out, err := compile(program); err != nil {
		t.Fatalf("tsc: %v\n%s", err, out)
	}
	wrong := []string{"call.setMuted('mic', true);", "call.addEventListener('slot', ({ detail }) => detail.nothing);", "call.messages.follow(null);", "call.messages.send('grace', 'x', { kind: 'notice' });"}
	out, _ := compile(strings.Join(wrong, "\n") + program)
	for n, line := range wrong {
		if !strings.Contains(out, fmt.Sprintf("app.ts(%d,", n+1)) {
			t.Errorf("%s compiles\n%s", line, out)
		}
	}
	for _, name := range publicNames(t) {
		if !regexp.MustCompile(`[\W]` + regexp.QuoteMeta(name) + `\W`).MatchString(program) {
			t.Errorf("testdata/typescript/app.ts does not use %s", name)
		}
	}
}

// publicNames are the exports of index.d.ts, and the members and events of the classes that an application gets.
func publicNames(t *testing.T) []string {
	t.Helper()
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(library, "types", name+".d.ts"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^export (?:\{ (\w+) \}|type (\w+) )`).FindAllStringSubmatch(read("index"), -1) {
		names = append(names, found[1]+found[2])
	}
	for _, file := range []string{"call", "presence", "messages", "moderation", "door", "errors"} {
		_, class, _ := strings.Cut(read(file), "\nexport class ")
		class, _, _ = strings.Cut(class, "\n}\n")
		for _, found := range regexp.MustCompile(`(?m)^    (?:get |static )?(\w+)(?:\(.*\)|\??): `).FindAllStringSubmatch(class, -1) {
			names = append(names, found[1])
		}
	}
	_, events, _ := strings.Cut(read("events"), "\nexport type CallEvents ")
	for _, found := range regexp.MustCompile(`(?m)^    ['"]?([\w-]+)['"]?\??: `).FindAllStringSubmatch(events, -1) {
		names = append(names, found[1])
	}
	if len(names) < 80 {
		t.Fatalf("read only %d names: %v", len(names), names)
	}
	return names
}

// TestPackage: the folder of the library is an npm package as it is, of the version of this release, and its files are there.
func TestPackage(t *testing.T) {
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(library, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	var manifest struct {
		Name, Version, Type, Types, License string
		Exports                             map[string]any
		Files                               []string
		Dependencies                        map[string]string
	}
	if err := json.Unmarshal([]byte(read("package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Version != build.Version || !strings.Contains(read("version.js"), "'"+build.Version+"'") {
		t.Errorf("package.json has version %s, and version.js is\n%s\nwant %s", manifest.Version, read("version.js"), build.Version)
	}
	if manifest.Name != "@holdfast-rtc/holdfast" || manifest.Type != "module" || manifest.License != "Apache-2.0" || len(manifest.Dependencies) != 0 {
		t.Errorf("package.json says %+v", manifest)
	}
	entry, ok := manifest.Exports["."].(map[string]any)
	if !ok || entry["types"] != "./types/index.d.ts" || entry["default"] != "./index.js" {
		t.Fatalf("package.json exports %v", manifest.Exports)
	}
	for _, name := range []string{"types/index.d.ts", "index.js", "README.md", "LICENSE"} {
		read(name)
	}
	minor := build.Version[:strings.LastIndex(build.Version, ".")]
	for _, file := range []string{"README.md", "examples/vanilla/index.html"} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`/holdfast/(\d+\.\d+)/index\.js`).FindAllStringSubmatch(string(content), -1) {
			if found[1] != minor {
				t.Errorf("%s names %s, and this is %s", file, found[0], minor)
			}
		}
	}
	if ours, err := os.ReadFile("../LICENSE"); err != nil || string(ours) != read("LICENSE") {
		t.Errorf("the library's LICENSE is not that of the repository (%v)", err)
	}
	// Node has no RTCPeerConnection. Servers that render pages import the library nevertheless.
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules", path.Dir(manifest.Name))
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(library)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(folder, filepath.Join(modules, path.Base(manifest.Name))); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "app.mjs")
	text := `import { Call, version } from '` + manifest.Name + `';
const code = await new Call().join({ url: 'https://host', token: 't' }).catch((error) => error.code);
console.log(version, code, await import('` + manifest.Name + `/call.js').catch((error) => error.code));`
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tool.Find(t, "node"), script).CombinedOutput()
	if want := build.Version + " no_webrtc ERR_PACKAGE_PATH_NOT_EXPORTED\n"; err != nil || string(out) != want {
		t.Errorf("node says %q (%v), want %q", out, err, want)
	}
}
