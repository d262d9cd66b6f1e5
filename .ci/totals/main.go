// Command totals reads `go test -json`, shows what people need to see of it, and
// writes "passed failed skipped packages" to the file named by its argument, and after
// it one line "package test failures" for each failed test that may be run again, and one
// line "! package what" for each failure that may not. It exits 1 when something failed.
//
// A test and each of its subtests count, also one that did not end because the package's time was over; a package that
// fails without any of these (it did not build, it leaked) counts as one failure.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// event is one line of test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
	Elapsed    float64
}

// totals counts, and keeps the output of what has not ended yet.
type totals struct {
	passed, failed, skipped, packages int

	output    map[string][]string // by package and test
	failures  map[string]int      // by package
	again     map[string]int      // failures by package and top-level test, of those that ended and raced with nothing
	lasting   []string            // failures that may not be run again: "package what"
	sawTests  map[string]bool
	buildText []string
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: totals FILE < go-test-json")
		os.Exit(2)
	}
	t := &totals{output: map[string][]string{}, failures: map[string]int{}, again: map[string]int{}, sawTests: map[string]bool{}}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text()) // not JSON: something that go itself says
			continue
		}
		t.take(e)
	}
	counts := fmt.Sprintf("%d %d %d %d\n", t.passed, t.failed, t.skipped, t.packages)
	for test, failures := range t.again {
		if failures == neverAgain {
			counts += fmt.Sprintf("! %s: a data race\n", test)
			continue
		}
		counts += fmt.Sprintf("%s %d\n", test, failures)
	}
	for _, what := range t.lasting {
		counts += "! " + what + "\n"
	}
	if err := os.WriteFile(os.Args[1], []byte(counts), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if lines.Err() != nil || t.failed > 0 {
		os.Exit(1)
	}
}

func (t *totals) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		t.buildText = append(t.buildText, e.Output)
	case "output":
		t.output[key] = append(t.output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
		} else {
			t.endTest(e)
		}
		delete(t.output, key)
	}
}

func (t *totals) endTest(e event) {
	t.sawTests[e.Package] = true
	switch e.Action {
	case "pass":
		t.passed++
		t.showLogged(e)
		t.showSlow(e)
	case "skip":
		t.skipped++
		fmt.Printf("--- SKIP %s %s\n%s", e.Package, e.Test, t.text(e))
	case "fail":
		t.failed++
		t.failures[e.Package]++
		t.noteFailure(e)
		fmt.Printf("--- FAIL %s %s\n%s", e.Package, e.Test, t.text(e))
	}
}

// noteFailure remembers a failed test, so that it can be run again by itself. A data race is a
// fault whatever the machine does, so its test stays failed.
func (t *totals) noteFailure(e event) {
	top, _, _ := strings.Cut(e.Test, "/")
	key := e.Package + " " + top
	if strings.Contains(t.text(e), "race detected during execution of test") {
		t.again[key] = neverAgain
	}
	if failures, known := t.again[key]; !known || failures != neverAgain {
		t.again[key]++
	}
}

// neverAgain marks a test that must not be run again.
const neverAgain = -1

// slowSeconds is from when on a test's time is shown: where the minutes of a run go.
const slowSeconds = 10

func (t *totals) showSlow(e event) {
	if e.Elapsed >= slowSeconds && !strings.Contains(e.Test, "/") {
		fmt.Printf("     %s took %.0f s\n", e.Test, e.Elapsed)
	}
}

// loggedLines is how much a passing test may say.
const loggedLines = 20

// logged matches what a test logs: an indent, its file and line.
var logged = regexp.MustCompile(`^\s+(\w+_test\.go:\d+: .*)`)

// showLogged prints what a passing test has logged, such as what it measured.
func (t *totals) showLogged(e event) {
	left := loggedLines
	for _, line := range t.output[e.Package+" "+e.Test] {
		if said := logged.FindStringSubmatch(line); said != nil && left > 0 && !strings.Contains(line, "[rapid] OK") {
			left--
			fmt.Printf("     %s: %s\n", e.Test, said[1])
		}
	}
}

func (t *totals) endPackage(e event) {
	took := time.Duration(e.Elapsed * float64(time.Second)).Round(10 * time.Millisecond)
	if t.sawTests[e.Package] {
		t.packages++
	}
	switch {
	case e.Action == "fail":
		unended, count := t.unended(e.Package)
		t.failed += count
		if t.failures[e.Package] > 0 && count == 0 {
			fmt.Printf("FAIL %s (%s)\n", e.Package, took)
			return
		}
		if count == 0 {
			t.failed++
			t.lasting = append(t.lasting, e.Package+": no test failed, but the package did")
		}
		fmt.Printf("FAIL %s (%s)\n%s%s%s", e.Package, took, strings.Join(t.buildText, ""), unended, t.text(e))
		t.buildText = nil
	case e.Action == "pass" && t.sawTests[e.Package]:
		fmt.Printf("ok   %s (%s)\n", e.Package, took)
	}
}

// unendedLines is how much is shown of what a test said before its process died.
const unendedLines = 80

// unended is what the tests said that the package's process did not live to end, and how many they are: a
// panic, or what hung.
func (t *totals) unended(pkg string) (string, int) {
	var said strings.Builder
	count := 0
	for key, lines := range t.output {
		if test, ok := strings.CutPrefix(key, pkg+" "); ok && test != "" {
			t.lasting = append(t.lasting, pkg+" "+test+": did not end")
			said.WriteString("--- FAIL " + pkg + " " + test + ": did not end\n" + strings.Join(lines[max(0, len(lines)-unendedLines):], ""))
			delete(t.output, key)
			count++
		}
	}
	return said.String(), count
}

func (t *totals) text(e event) string { return strings.Join(t.output[e.Package+" "+e.Test], "") }
