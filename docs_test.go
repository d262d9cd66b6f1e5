package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// tour is the document whose links name a function and the line that declares it.
const tour = "docs/TOUR.md"

// tourLink is [`name`](path#Lline). A name is func, Type, or Type.method.
var tourLink = regexp.MustCompile("\\[`([^`]+)`\\]\\(([^)#]+)#L([0-9]+)\\)")

// declaration matches the line of a source file that declares name.
func declaration(path, name string) (*regexp.Regexp, error) {
	owner, method, isMethod := strings.Cut(name, ".")
	owner, method = regexp.QuoteMeta(owner), regexp.QuoteMeta(method)
	switch ext := filepath.Ext(path); {
	case ext == ".go" && isMethod:
		return regexp.Compile(`^func \(\w+ \*?` + owner + `\) ` + method + `\(`)
	case ext == ".go":
		return regexp.Compile(`^(func|type) ` + owner + `\b`)
	case ext == ".js" && isMethod:
		return regexp.Compile(`^ {2}((async|static|get) )*` + method + `\(.*\{$`)
	case ext == ".js":
		return regexp.Compile(`^(export )?(async )?(function|class|const) ` + owner + `\b`)
	default:
		return nil, fmt.Errorf("no declarations are known of %q", ext)
	}
}

// declared returns the number of the one line of text that declares name.
func declared(path, text, name string) (int, error) {
	pattern, err := declaration(path, name)
	if err != nil {
		return 0, err
	}
	found := 0
	for i, line := range strings.Split(text, "\n") {
		if !pattern.MatchString(line) {
			continue
		}
		if found != 0 {
			return 0, fmt.Errorf("%s declares %s in lines %d and %d", path, name, found, i+1)
		}
		found = i + 1
	}
	if found == 0 {
		return 0, fmt.Errorf("%s declares no %s", path, name)
	}
	return found, nil
}

// anchored returns a line of the tour with the right line numbers.
func anchored(line string) (string, error) {
	var wrong error
	line = tourLink.ReplaceAllStringFunc(line, func(link string) string {
		part := tourLink.FindStringSubmatch(link)
		name, path := part[1], part[2]
		text, err := os.ReadFile(filepath.Join(filepath.Dir(tour), path))
		if err != nil {
			wrong = err
			return link
		}
		number, err := declared(path, string(text), name)
		if err != nil {
			wrong = err
			return link
		}
		return fmt.Sprintf("[`%s`](%s#L%d)", name, path, number)
	})
	return line, wrong
}

// TestTour checks that every sentence of docs/TOUR.md links to the lines that it speaks of.
func TestTour(t *testing.T) {
	text, err := os.ReadFile(tour)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	sentences := 0
	for i, line := range lines {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		sentences++
		if !tourLink.MatchString(line) {
			t.Errorf("%s:%d: the sentence has no link", tour, i+1)
		}
		right, err := anchored(line)
		switch {
		case err != nil:
			t.Errorf("%s:%d: %v", tour, i+1, err)
		case right == line:
		case *update:
			lines[i] = right
		default:
			t.Errorf("%s:%d: a line number is out of date: run go test . -run TestTour -update, and commit it\n  has  %s\n  want %s", tour, i+1, line, right)
		}
	}
	if sentences == 0 {
		t.Errorf("%s has no sentences", tour)
	}
	if *update {
		if err := os.WriteFile(tour, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheTourSeesWhatIsMissing(t *testing.T) {
	const source = "package p\n\nfunc a() {}\n\nfunc (x *T) b() {}\n\nfunc (x *U) b() {}\n"
	for name, want := range map[string]int{"a": 3, "T.b": 5, "U.b": 7, "b": 0, "T.a": 0} {
		if line, err := declared("p.go", source, name); line != want || (err != nil) != (want == 0) {
			t.Errorf("%s is declared in line %d (%v), want %d", name, line, err, want)
		}
	}
	const twice = "class A {\n  b() {\n  }\n}\nclass C {\n  b() {\n  }\n}\n"
	if _, err := declared("p.js", twice, "A.b"); err == nil {
		t.Error("a name with two declarations is accepted")
	}
}

// documentLink is [text](target), without the part behind #.
var documentLink = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)

// TestDocumentsLinkToWhatIsThere checks the relative links of every document.
func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	links := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, link := range documentLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), link[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil || links == 0 {
		t.Fatalf("%d links, %v", links, err)
	}
}
