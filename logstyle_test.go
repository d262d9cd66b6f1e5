package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// levels are the methods of a logger that take a message and then keys and values.
var levels = []string{"Debug", "Info", "Warn", "Error"}

// logName begins a message in capitals: an abbreviation such as TLS, or a product.
var logName = regexp.MustCompile(`^([A-Z]{2,}|Firefox|Chromium|Redis)\b`)

// logKey is how the keys of attributes are written.
var logKey = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// badMessage says what is wrong with a message of the log, or nothing.
func badMessage(text string) string {
	switch {
	case text == "":
		return "is empty"
	case strings.ToLower(text[:1]) != text[:1] && !logName.MatchString(text):
		return "begins with a capital"
	case strings.ContainsAny(text[len(text)-1:], ".!:") || strings.TrimSpace(text) != text:
		return "ends with a mark or a space"
	case strings.ContainsAny(text, "\n%"):
		return "has a line break, or a verb of fmt: variable parts belong into attributes"
	default:
		return ""
	}
}

// badLogs are the faults of a file's log calls, with their positions. Messages that a function of the file's own brings are not judged.
func badLogs(file *ast.File) (faults map[token.Pos]string, judged int) {
	faults = map[token.Pos]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name, on := calledOn(call)
		if !slices.Contains(levels, name) || !isLog(on) || len(call.Args) == 0 {
			return true
		}
		text, constant := literal(call.Args[0])
		if _, variable := call.Args[0].(*ast.Ident); variable {
			return true
		}
		judged++
		if !constant {
			faults[call.Pos()] = "the message is put together: variable parts belong into attributes"
		} else if wrong := badMessage(text); wrong != "" {
			faults[call.Pos()] = fmt.Sprintf("the message %q %s", text, wrong)
		}
		for i := 1; i+1 < len(call.Args); i += 2 {
			if key, ok := literal(call.Args[i]); ok && !logKey.MatchString(key) {
				faults[call.Args[i].Pos()] = fmt.Sprintf("the key %q is not in lower case with underscores", key)
			}
		}
		return true
	})
	return faults, judged
}

// TestLogMessagesKeepTheStyle: operators search logs for constant messages, which are parts of sentences, and for keys of one spelling.
func TestLogMessagesKeepTheStyle(t *testing.T) {
	all := 0
	eachSource(t, func(_ string, files *token.FileSet, file *ast.File) {
		faults, judged := badLogs(file)
		all += judged
		for at, fault := range faults {
			t.Errorf("%v: %s", files.Position(at), fault)
		}
	})
	if all < 100 {
		t.Errorf("only %d calls were found: the test sees too little", all)
	}
}

func TestBadLogMessagesAreFound(t *testing.T) {
	for call, want := range map[string]string{
		`log.Info("room opened", "room", id)`:                   "",
		`r.log.Warn("TLS with a client failed", "error", err)`:  "",
		`log.Info("room " + id)`:                                "put together",
		`log.Info(fmt.Sprintf("room %s", id))`:                  "put together",
		`log.Info("Room opened")`:                               "capital",
		`slog.Error("room opened.")`:                            "mark",
		`log.Debug("room %s opened", "room", id)`:               "verb",
		`log.Debug("room opened", "Room", id)`:                  "lower case",
		`log.Debug("room opened", "room", id, "roomEpoch", 1)`:  "lower case",
		`log.Debug("room opened", "room-epoch", 1, "a", "B c")`: "lower case",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() { "+call+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		faults, judged := badLogs(file)
		got := ""
		for _, fault := range faults {
			got = fault
		}
		if judged != 1 || (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}
