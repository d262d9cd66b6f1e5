package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const runbook = "docs/RUNBOOK.md"

// logging are functions that log at WARN or ERROR what their caller says, with the index of that argument.
var logging = map[string]int{"logDropped": 0, "fail": 0, "reread": 2}

// loggers are the functions of logging themselves and the guard, which logs what broke: the runbook has one row for all panics.
var loggers = []string{"cluster/cluster.go", "balancer/balancer.go", "node/keyfile.go", "internal/panics/panics.go"}

// warned are the messages that a file logs at WARN and ERROR. It reports calls whose message it cannot read.
func warned(file *ast.File) (messages []string, unread []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name, on := calledOn(call)
		argument, helper := logging[name]
		if !helper && (!slices.Contains([]string{"Warn", "Error"}, name) || !isLog(on)) || len(call.Args) <= argument {
			return true
		}
		if text, ok := literal(call.Args[argument]); ok {
			messages = append(messages, text)
		} else if !helper {
			unread = append(unread, call.Pos())
		}
		return true
	})
	return messages, unread
}

// calledOn returns the name of a called function, and the last name of what it is called on.
func calledOn(call *ast.CallExpr) (name, on string) {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name, ""
	case *ast.SelectorExpr:
		switch x := f.X.(type) {
		case *ast.Ident:
			on = x.Name
		case *ast.SelectorExpr:
			on = x.Sel.Name
		}
		return f.Sel.Name, on
	}
	return "", ""
}

func isLog(name string) bool { return strings.EqualFold(name, "log") || name == "slog" }

// literal is a string, perhaps in parts.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	}
	return "", false
}

// eachSource parses the source of all packages that a node or the balancer has.
func eachSource(t *testing.T, judge func(path string, files *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"lab", "cli", "docs", "web", "storetest", "testkit", "testdata", "tool"}, entry.Name())) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		judge(path, files, parsed)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// warnedByTheProgram collects the messages of those packages.
func warnedByTheProgram(t *testing.T) []string {
	t.Helper()
	var all []string
	eachSource(t, func(path string, files *token.FileSet, file *ast.File) {
		messages, unread := warned(file)
		all = append(all, messages...)
		for _, at := range unread {
			if !slices.Contains(loggers, filepath.ToSlash(path)) {
				t.Errorf("%v: the message is no literal, so %s cannot be compared with it", files.Position(at), runbook)
			}
		}
	})
	slices.Sort(all)
	return slices.Compact(all)
}

// runbookRow is a row whose first column is a message, or its beginning, or an alert.
var runbookRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\|$")

// shortestBeginning of a message that a row may name instead of the whole.
const shortestBeginning = 15

// TestTheRunbookHasEveryWarningAndAlert compares docs/RUNBOOK.md with the source and with docs/monitoring/alerts.yml.
func TestTheRunbookHasEveryWarningAndAlert(t *testing.T) {
	page, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("docs/monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	messages := warnedByTheProgram(t)
	if len(messages) < 60 {
		t.Errorf("only %d messages are found: the walk is broken", len(messages))
	}
	for _, rule := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		messages = append(messages, rule[1])
	}
	used := map[string]bool{}
	rows := runbookRow.FindAllStringSubmatch(string(page), -1)
	for _, message := range messages {
		found := 0
		for _, row := range rows {
			if row[1] == message || len(row[1]) >= shortestBeginning && strings.HasPrefix(message, row[1]) {
				found++
				used[row[1]] = true
			}
		}
		if found != 1 {
			t.Errorf("%s has %d rows for: %s", runbook, found, message)
		}
	}
	for _, row := range rows {
		if !used[row[1]] {
			t.Errorf("%s has a row for %q, which nothing says", runbook, row[1])
		}
	}
}

func TestWarningsAreFoundInSource(t *testing.T) {
	const source = `package p
func f() {
	s.log.Warn("one "+"two", "k", 1)
	deps.Log.Error("three")
	log.Warn(what)
	c.logDropped("four", err)
	t.Error("five")
	log.Info("six")
}`
	parsed, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	messages, unread := warned(parsed)
	if want := []string{"one two", "three", "four"}; !slices.Equal(messages, want) || len(unread) != 1 {
		t.Errorf("found %q and %d that cannot be read, want %q and 1", messages, len(unread), want)
	}
}
