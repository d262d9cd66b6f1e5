package devcluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// narrator shows a node's log on the terminal: all of it if it is verbose, else errors, and what is no log line, such as a panic's trace. Of
// what happens in the cluster a follower tells.
type narrator struct {
	name    string
	verbose bool
	out     *terminal
}

func (n *narrator) show(line []byte) {
	entry, ok := parseEntry(line)
	if !ok {
		if len(line) > 0 {
			n.out.printf("%-12s | %s\n", n.name, line)
		}
		return
	}
	if n.verbose || entry.level == "ERROR" {
		n.out.printf("%s\n", entry.text(n.name))
	}
}

type entry struct {
	at      time.Time
	level   string
	message string
	fields  map[string]any
}

func parseEntry(line []byte) (entry, bool) {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber() // an epoch must not come out as 1.7e+12
	if decoder.Decode(&fields) != nil {
		return entry{}, false
	}
	e := entry{fields: fields}
	e.message, _ = fields["msg"].(string)
	e.level, _ = fields["level"].(string)
	stamp, _ := fields["time"].(string)
	e.at, _ = time.Parse(time.RFC3339Nano, stamp)
	for _, key := range []string{"time", "level", "msg", "process"} {
		delete(fields, key)
	}
	return e, e.message != ""
}

// Strangers wrote some of the text.
func legible(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

func (e entry) text(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-12s ", e.at.Format("15:04:05.000"), name)
	if e.level != "INFO" {
		b.WriteString(e.level + " ")
	}
	b.WriteString(e.message)
	for _, key := range slices.Sorted(maps.Keys(e.fields)) {
		fmt.Fprintf(&b, "  %s=%s", key, legible(fmt.Sprint(e.fields[key])))
	}
	return b.String()
}
