package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write NOTICE, the line numbers of docs/TOUR.md, or the floor plan of docs/ARCHITECTURE.md, anew")

// licence is a kind of licence that may be linked into the binary.
type licence struct {
	name string // as SPDX has it
	// body begins its text; what stands before it are titles and copyrights.
	body string
	// only are the directories where it is allowed, by module and path; nil for all.
	only []string
}

// bsd stands for a text that has two or three clauses.
const bsd = "BSD"

var licences = []licence{
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files", nil},
	{bsd, "Redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met", nil},
	{"Apache-2.0", "Apache License Version 2.0, January 2004", nil},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee is hereby granted", nil},
	{"MPL-2.0", "Mozilla Public License, version 2.0", nil},
	{"MPL-2.0", "Mozilla Public License Version 2.0", nil},
	// These ask for less than MIT.
	{"CC0-1.0", "Creative Commons Legal Code CC0 1.0 Universal", []string{
		"github.com/pion/dtls/v3", "github.com/pion/rtcp", "github.com/pion/stun/v4", "github.com/pion/turn/v5",
	}},
	{"BSL-1.0", "Boost Software License - Version 1.0", []string{"github.com/alicebob/miniredis/v2/fpconv"}},
	{"Unlicense", "This is free and unencumbered software released into the public domain.", []string{"github.com/alicebob/miniredis/v2/gopher-json"}},
}

// unwanted are conditions that may stand beside the text of an allowed licence.
var unwanted = []string{
	"Commons Clause", "Business Source License", "Server Side Public License", "All advertising materials",
	"GNU GENERAL PUBLIC LICENSE Version", "GNU LESSER GENERAL PUBLIC LICENSE Version", "GNU AFFERO GENERAL PUBLIC LICENSE Version",
}

var errLicence = errors.New("the licence is none of those that may be linked")

// judge tells a licence by its text, and cuts the text where the body begins.
func judge(where, text string) (name, copyrights, body string, err error) {
	for _, words := range unwanted {
		if spaced(words).MatchString(text) {
			return "", "", "", fmt.Errorf("%w: %s says %q", errLicence, where, words)
		}
	}
	for _, l := range licences {
		if at := spaced(l.body).FindStringIndex(text); at != nil && (l.only == nil || slices.Contains(l.only, where)) {
			name, body = l.name, text[at[0]:]
			switch {
			case name == bsd && spaced("Neither the name").MatchString(body):
				name = "BSD-3-Clause"
			case name == bsd:
				name = "BSD-2-Clause"
			}
			return name, text[:at[0]], body, nil
		}
	}
	return "", "", "", fmt.Errorf("%w: %s begins with %.80q", errLicence, where, text)
}

// spaced finds words, whatever white space is between them.
func spaced(words string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(words), " ", `\s+`))
}

// licensed is a directory of a module with a licence of its own: its path, and the file.
type licensed struct{ where, version, file string }

var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)(\.(txt|md))?$`)
	noticeFile  = regexp.MustCompile(`(?i)^notice(\.(txt|md))?$`)
)

// linked lists the licences and the notices of everything that is linked into the binary: of each package's directory and of
// those above it, up to its module's.
func linked() (licences, notices []licensed, err error) {
	const format = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"
	list := exec.Command("go", "list", "-deps", "-f", format, ".")
	var said bytes.Buffer
	list.Stderr = &said
	out, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("list what is linked: %w: %s", err, said.String())
	}
	bare := map[string]bool{} // modules without a licence so far
	for line := range strings.Lines(string(out)) {
		columns := strings.Split(strings.TrimSpace(line), "\t")
		if len(columns) != 4 {
			continue
		}
		module, version, root, dir := columns[0], columns[1], columns[2], columns[3]
		for ; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
			files, err := os.ReadDir(dir)
			if err != nil {
				return nil, nil, err
			}
			own, found := licensed{module + filepath.ToSlash(strings.TrimPrefix(dir, root)), version, ""}, false
			for _, file := range files {
				own.file = filepath.Join(dir, file.Name())
				switch {
				case file.IsDir() && file.Name() == "LICENSES":
					texts, err := filepath.Glob(filepath.Join(own.file, "*.txt"))
					if err != nil {
						return nil, nil, err
					}
					for _, own.file = range texts {
						licences = append(licences, own)
					}
				case file.IsDir():
				case licenceFile.MatchString(file.Name()):
					licences, found = append(licences, own), true
				case noticeFile.MatchString(file.Name()):
					notices = append(notices, own)
				}
			}
			if dir == root {
				bare[module] = !found
			}
		}
	}
	for module, is := range bare {
		if is {
			return nil, nil, fmt.Errorf("%w: %s has no licence file", errLicence, module)
		}
	}
	return compact(licences), compact(notices), nil
}

func compact(list []licensed) []licensed {
	slices.SortFunc(list, func(a, b licensed) int { return cmp.Or(cmp.Compare(a.where, b.where), cmp.Compare(a.file, b.file)) })
	return slices.Compact(list)
}

const noticeHead = `Holdfast
Licensed under the Apache License, Version 2.0: see LICENSE.

Written by "go test . -run Notice -update"; do not edit. The binary contains the Go standard library and runtime
(Copyright 2009 The Go Authors, BSD-3-Clause: the text is that of golang.org/x/sys below) and what is listed here.
None was changed; the source of each is at https://pkg.go.dev/MODULE@VERSION and in the Go module proxy.
`

// notice writes what NOTICE must say.
func notice() (string, error) {
	licences, notices, err := linked()
	if err != nil {
		return "", err
	}
	type group struct{ name, heads, words, body string }
	var groups []*group
	for _, l := range licences {
		text, err := os.ReadFile(l.file)
		if err != nil {
			return "", err
		}
		name, copyrights, body, err := judge(l.where, string(text))
		if err != nil {
			return "", err
		}
		words := strings.Join(strings.Fields(body), " ")
		at := slices.IndexFunc(groups, func(g *group) bool { return g.words == words })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{name: name, words: words, body: body})
		}
		head := "  " + l.where + " " + l.version + "\n"
		if !strings.Contains(groups[at].heads, head) { // else it is the text without names in LICENSES
			groups[at].heads += head + lines(copyrights, "    ")
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int { return cmp.Compare(a.name, b.name) })
	said := noticeHead
	for _, g := range groups {
		said += "\n" + strings.Repeat("=", 80) + "\n" + g.name + "\n" + g.heads + "\n" + lines(g.body, "")
	}
	for _, n := range notices {
		text, err := os.ReadFile(n.file)
		if err != nil {
			return "", err
		}
		said += "\n" + strings.Repeat("=", 80) + "\nNotice of " + n.where + " " + n.version + "\n\n" + lines(string(text), "")
	}
	return said, nil
}

// lines indents text that is not blank, without white space at the ends of its lines.
func lines(text, indent string) string {
	var out strings.Builder
	text = strings.TrimRight(strings.TrimLeft(text, "\r\n"), " \t\r\n")
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(indent+line, " \t\r\n") + "\n")
	}
	return out.String()
}

// TestNoticeHasEveryLicence reads the licences of what is linked in the module cache. After a change of go.mod run it with -update.
func TestNoticeHasEveryLicence(t *testing.T) {
	want, err := notice()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("NOTICE", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("NOTICE")
	if err != nil || string(got) != want {
		t.Errorf("NOTICE is not what is linked (%v): run go test . -run Notice -update, and read the difference", err)
	}
}

func TestLicencesAreTold(t *testing.T) {
	const mit = "X (c) 2020 Y\n\nPermission is hereby granted, free of charge, to any person obtaining a copy\nof this software and associated documentation files (the \"Software\")"
	for text, want := range map[string]string{
		mit: "MIT", licences[1].body + " 3. Neither the\nname of": "BSD-3-Clause", licences[1].body: "BSD-2-Clause",
		"Mozilla Public License Version 2.0\n===": "MPL-2.0", "": "", "All rights reserved.": "",
		"GNU GENERAL PUBLIC LICENSE\n  Version 3, 29 June 2007": "", "\"Commons Clause\" License Condition v1.0\n" + mit: "",
		"This is free and unencumbered software released into the public domain.": "",
	} {
		name, _, _, err := judge("example.org/module", text)
		if name != want || (want == "") != errors.Is(err, errLicence) {
			t.Errorf("%.40q is told as %q, %v, want %q", text, name, err, want)
		}
	}
	if _, copyrights, _, _ := judge("example.org/module", mit); strings.TrimSpace(copyrights) != "X (c) 2020 Y" {
		t.Errorf("the copyright is %q", copyrights)
	}
}
