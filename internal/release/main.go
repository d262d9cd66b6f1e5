// Command release builds the files of a release: static binaries for Linux with their licences, bills of materials, container
// images and checksums.
//
//	go run ./internal/release --version 0.1.0
//
// It promises the same bytes for the same commit, the same tags of git and the same version of Go, whatever the directory, the
// machine and its variables are. It needs the Go tool and git, and no container engine. It does not know where a release is
// published. A reader begins with release.run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	r := release{source: ".", image: "holdfast", targets: allTargets()}
	flag.StringVar(&r.out, "out", "dist", "the directory that receives the files; it must be empty or not exist")
	flag.StringVar(&r.version, "version", "", "the release to build, such as 0.1.0: refused unless internal/build names it too; without it the files are named after the commit")
	flag.BoolVar(&r.dirty, "dirty", false, "build a checkout although it has changes that no commit has; the files are named so")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "release: %q is no flag: see --help\n", flag.Arg(0))
		os.Exit(2)
	}
	files, err := r.run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, file := range files {
		fmt.Fprintln(os.Stdout, file)
	}
}
