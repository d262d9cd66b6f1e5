package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	architecture = "docs/ARCHITECTURE.md"
	planBegins   = "<!-- The floor plan is written by `go test . -run TestFloorPlan -update`. -->\n"
	planEnds     = "<!-- The floor plan ends. -->\n"
)

// synopsis is the first sentence of the package's comment, without "Package name" and up to a colon. A package that consists of tests has its comment there.
func synopsis(pkg string) (string, error) {
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return "", err
		}
		if sentence := sentenceOf(parsed); sentence != "" {
			return sentence, nil
		}
	}
	return "", fmt.Errorf("package %s has no comment", pkg)
}

func sentenceOf(file *ast.File) string {
	if file.Doc == nil {
		return ""
	}
	sentence := new(doc.Package).Synopsis(file.Doc.Text())
	for _, head := range []string{"Package " + file.Name.Name + " ", "Command holdfast ", "Command release "} {
		if rest, ok := strings.CutPrefix(sentence, head); ok {
			what, _, _ := strings.Cut(strings.TrimSuffix(rest, "."), ": ")
			return what
		}
	}
	return "" // the comment of a file, or of another package's tests
}

// floorPlan is the table of docs/ARCHITECTURE.md: one row a package, from the roof to the ground.
func floorPlan() (string, error) {
	var plan strings.Builder
	plan.WriteString("\n| floor | package | what it is or does |\n|---|---|---|\n")
	for number, floor := range floors {
		for _, pkg := range floor {
			sentence, err := synopsis(pkg)
			if err != nil {
				return "", err
			}
			name := pkg
			if pkg == "." {
				name = "main.go"
			}
			fmt.Fprintf(&plan, "| %d | `%s` | %s |\n", len(floors)-number, name, strings.ReplaceAll(sentence, "|", `\|`))
		}
	}
	plan.WriteString("\n")
	return plan.String(), nil
}

// TestFloorPlan compares the plan in docs/ARCHITECTURE.md with the floors that the import rules enforce.
func TestFloorPlan(t *testing.T) {
	text, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), planBegins)
	has, after, ends := strings.Cut(rest, planEnds)
	if !begins || !ends {
		t.Fatalf("%s has lost the marks around the floor plan", architecture)
	}
	want, err := floorPlan()
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case has == want:
	case *update:
		if err := os.WriteFile(architecture, []byte(before+planBegins+want+planEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the floor plan of %s is out of date: run go test . -run TestFloorPlan -update, and commit it", architecture)
	}
}
