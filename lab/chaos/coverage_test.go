package chaos

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// elsewhere are the verdicts that no broken build needs to show failing, and why.
func elsewhere() map[string]string {
	return map[string]string{
		"nothing moved": "TestCalm sees it fail, with detection that is too tight by the flag for that",
		"it was hard":   "it judges the run and not the product: TestCalmMustBeHard",
	}
}

// TestEveryVerdictHasABrokenBuild reads in the source which verdicts there are.
func TestEveryVerdictHasABrokenBuild(t *testing.T) {
	broken := make(map[string]bool)
	for _, b := range brokenBuilds() {
		broken[b.verdict] = true
	}
	verdicts := verdictNames(t)
	if len(verdicts) < 10 {
		t.Fatalf("only %v were found", verdicts)
	}
	for name := range verdicts {
		if _, excused := elsewhere()[name]; !broken[name] && !excused {
			t.Errorf("no broken build shows %q failing", name)
		}
	}
	for name := range elsewhere() {
		if !verdicts[name] || broken[name] {
			t.Errorf("%q needs no excuse", name)
		}
	}
}

// verdictNames are what verdict and undisturbed are called with.
func verdictNames(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			at := map[string]int{"verdict": 0, "undisturbed": 1}
			if called, is := call.Fun.(*ast.Ident); is {
				if i, known := at[called.Name]; known && i < len(call.Args) {
					if text, is := call.Args[i].(*ast.BasicLit); is && text.Kind == token.STRING {
						name, _ := strconv.Unquote(text.Value)
						names[name] = true
					}
				}
			}
			return true
		})
	}
	return names
}
