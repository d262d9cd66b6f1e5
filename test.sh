#!/usr/bin/env bash
# Everything that must hold before a change is merged, with one command on a
# machine that has Go and bash. As root on Debian or Ubuntu it installs the other
# tools; elsewhere it says what it skips. With CI=true a missing tool is a failure.
# "quick" runs what needs no browser and no cluster; "install" only installs;
# "fuzz 10m" runs every fuzz test for so long, "fuzz 10m NAME" those whose package or name has NAME in it.
# The last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")" || exit

# Only the race detector needs cgo: the rest shares what is compiled, also with a release, which is built with -trimpath.
export CGO_ENABLED=0 GOFLAGS=-trimpath
readonly lint_version=2.15.0 vuln_version=1.9.0
readonly tools="${XDG_CACHE_HOME:-$HOME/.cache}/holdfast-tools"
fuzz_runs=1000x fuzz_only=.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

passed=0 failed=0 skipped=0 packages=0
broken=() # what failed for good, named once more at the end
flaky=() # tests that failed once and then passed by themselves
readonly max_flaky=4
started=$SECONDS

# say also tells the time since the start, and the CPU time of all that has ended.
say() {
  local ticks
  read -ra ticks <"/proc/$$/stat" 2>/dev/null && ticks=(", CPU $(((ticks[15] + ticks[16]) / 100))s")
  printf '\n== %s (%ss%s)\n' "$*" "$((SECONDS - started))" "${ticks[0]:-}"
}

# check NAME COMMAND...: one step that passes or fails as a whole.
check() {
  local name=$1
  shift
  say "$name"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    broken+=("$name")
    echo "FAILED: $name"
  fi
}

# missing NAME TOOL: a step that cannot be done here.
missing() {
  say "$1"
  if [[ ${CI:-} == true ]]; then
    failed=$((failed + 1))
    broken+=("$1: there is no $2")
    echo "FAILED: $1: there is no $2, and with CI=true everything must be tested"
  else
    skipped=$((skipped + 1))
    echo "SKIPPED: $1: there is no $2 on this machine"
  fi
}

have() { command -v "$1" >/dev/null 2>&1; }

# absent prints the packages of the programs in internal/tool/tools.txt that this machine lacks.
absent() {
  local commands packages command
  while IFS='|' read -r commands packages _; do
    for command in $commands; do have "$command" && continue 2; done
    echo "$packages"
  done < <(grep -v '^#' internal/tool/tools.txt)
}

# install_tools installs what is missing where that is possible.
install_tools() {
  local wanted
  read -ra wanted < <(absent | xargs)
  [[ ${#wanted[@]} -gt 0 ]] || return 0
  if [[ $(id -u) != 0 ]] || ! have apt-get; then
    echo "missing here: ${wanted[*]} (they are installed only as root with apt-get)"
    return 0
  fi
  say "install ${wanted[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq || true
  # One by one where all at once fails, so that one that cannot be had does not cost the others.
  apt-get install -y -qq --no-install-recommends "${wanted[@]}" >"$work/apt" 2>&1 && return 0
  local tool
  for tool in "${wanted[@]}"; do
    apt-get install -y -qq --no-install-recommends "$tool" >"$work/apt" 2>&1 || { echo "could not install $tool:"; tail -3 "$work/apt"; }
  done
}

# bare_machine installs the list in a Debian that has nothing: what this machine happens to have hides nothing there.
bare_machine() {
  local root=$work/bare left
  # shellcheck source=/dev/null
  debootstrap --variant=minbase "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root" >"$work/bare.log" 2>&1 &&
    cp /etc/resolv.conf /etc/hosts "$root/etc/" && mkdir -p "$root/src/internal/tool" && cp test.sh "$root/src/" && cp internal/tool/tools.txt "$root/src/internal/tool/" &&
    left=$(chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root /src/test.sh install 2>>"$work/bare.log") ||
    { tail -20 "$work/bare.log"; echo "$left"; return 1; }
  rm -rf "$root"
}

formatted() {
  local bad
  bad=$(gofmt -s -l .) || return 1
  [[ -z $bad ]] || { echo "not formatted (run gofmt -s -w):"; echo "$bad"; return 1; }
}

# linter prints the path of the pinned golangci-lint, and builds it when it is not there.
linter() {
  local candidate
  for candidate in "$(command -v golangci-lint)" "$(go env GOPATH)/bin/golangci-lint" "$tools/golangci-lint-$lint_version"; do
    if [[ -x $candidate ]] && [[ $("$candidate" version 2>/dev/null) == *"version $lint_version "* ]]; then
      echo "$candidate"
      return 0
    fi
  done
  mkdir -p "$tools"
  local try
  for try in 1 2 3 4; do # At idle priority a download may time out.
    GOBIN="$tools" go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v$lint_version" >&2 && break
    ((try < 4)) || return 1
  done
  mv "$tools/golangci-lint" "$tools/golangci-lint-$lint_version"
  echo "$tools/golangci-lint-$lint_version"
}

lint() {
  local binary
  binary=$(linter) || return 1
  "$binary" run --allow-parallel-runners ./...
}

# scanner prints the path of the pinned govulncheck, and builds it when it is not there.
scanner() {
  local binary="$tools/govulncheck-$vuln_version"
  if [[ ! -x $binary ]]; then
    mkdir -p "$tools"
    GOBIN="$work" timeout 300 go install "golang.org/x/vuln/cmd/govulncheck@v$vuln_version" >&2 || return 1
    mv "$work/govulncheck" "$binary"
  fi
  echo "$binary"
}

# advisories looks the binary of nodes up in Go's database of vulnerabilities. The database comes as a module by the module proxy,
# so that a build server needs no other host. Fails only for what an upgrade mends (.ci/advisories); where the proxy does not answer, it says so.
advisories() {
  local binary database
  go test ./.ci/advisories || return 1
  if ! binary=$(scanner) || ! database=$(cd "$work" && timeout 120 go mod download -json golang.org/x/vulndb@latest | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') || [[ ! -d $database/data/osv ]]; then
    echo "NOT LOOKED UP: the module proxy does not give golang.org/x/vulndb"
    return 0
  fi
  echo "advisories of ${database##*@}"
  go build -tags node -o "$work/node" . && "$binary" -mode binary -format json -db "file://$database/data/osv" "$work/node" >"$work/advisories" &&
    go run ./.ci/advisories <"$work/advisories" || return 1
  local module
  for module in . lab/acme lab/livekit lab/webhook docs/kubernetes/check; do
    timeout 60 go -C "$module" list -m -u -f '{{if and .Update (not .Indirect)}}can be upgraded: {{.Path}} {{.Version}} to {{.Update.Version}}{{end}}' all
  done
  return 0
}

# run_again FLAGS...: each failed test once more by itself. A shared machine may make a test late; what passes now is
# counted as flaky, is named at the end, and more than max_flaky of them fail the run. Reads "package test failures" lines.
run_again() {
  local pkg test failures
  while read -r pkg test failures; do
    say "once more by itself: $pkg $test"
    if CGO_ENABLED=$((${#race} > 0)) go test "$@" -count=1 -timeout 10m -run "^$test\$" "$pkg" </dev/null; then
      flaky+=("$pkg $test")
      passed=$((passed + 1)) failed=$((failed - failures))
    else
      broken+=("$pkg $test")
    fi
  done
}

# tests NAME FLAGS... : go test, its results counted one by one.
tests() {
  local name=$1
  shift
  say "$name"
  local cgo=0
  [[ " $* " != *" -race "* ]] || cgo=1
  # go vet has looked at all of it already.
  CGO_ENABLED=$cgo go test -json -vet=off "$@" 2>"$work/stderr" | "$work/totals" "$work/counts"
  local status=$?
  cat "$work/stderr" >&2
  local p=0 f=0 s=0 n=0
  read -r p f s n <"$work/counts"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)) packages=$((packages + n))
  echo "$name: $n packages, $p passed, $f failed, $s skipped"
  if [[ $status != 0 && $f == 0 ]]; then
    failed=$((failed + 1))
    broken+=("$name: go test itself did not work")
    echo "FAILED: $name: go test itself did not work"
  fi
  local lasting again
  mapfile -t lasting < <(sed -n 's/^! //p' "$work/counts")
  mapfile -t again < <(tail -n +2 "$work/counts" | grep -v '^! ')
  broken+=("${lasting[@]}")
  # More than that at once is no accident of the machine.
  if ((${#again[@]} > max_flaky)); then
    broken+=("${again[@]}")
  elif ((${#again[@]} > 0)); then
    run_again ${race:+"$race"} < <(printf '%s\n' "${again[@]}")
  fi
}

# fuzz_targets prints "directory target" for every fuzz test there is.
fuzz_targets() {
  grep -rsHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed -E 's#^\./(.*)/[^/]*:func #\1 #' | sort -u | grep -E "$fuzz_only"
}

# fuzz_build DIRECTORY: the test binary, which go test -fuzz would link anew for each target. Instrumented, which compiles
# every dependency anew, it is only for the long runs: a thousand inputs are too few to be guided.
fuzz_build() {
  local said instrumented=()
  [[ $fuzz_runs == *x ]] || instrumented=(-fuzz .)
  if ! said=$(go test -c "${instrumented[@]}" -o "$work/fuzz-${1//\//-}" "./$1" 2>&1); then
    printf '%s: %s\n' "$1" "$said"
    return 1
  fi
}

# fuzz_one DIRECTORY TARGET: its output is shown only when it fails. What it finds interesting is kept where
# go test -fuzz keeps it. At the end of a time Go may take its own deadline for a failure (golang/go#75804).
fuzz_one() {
  local said binary="$work/fuzz-${1//\//-}"
  if ! said=$(cd "$1" && "$binary" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$fuzz_runs" -test.parallel 1 -test.fuzzcachedir "$fuzz_kept/$1" 2>&1); then
    if [[ $said == *"context deadline exceeded"* && $said != *"Failing input"* && $said != *panic* ]]; then return 0; fi
    printf '%s %s:\n%s\n' "$1" "$2" "$(tail -30 <<<"$said")"
    return 1
  fi
}

# fuzz_builds [AT ONCE]: so many packages at a time (2).
fuzz_builds() {
  export -f fuzz_build
  export fuzz_runs work
  fuzz_targets | cut -d' ' -f1 | uniq | xargs -P "${1:-2}" -L 1 bash -c 'fuzz_build "$@"' fuzz_build
}

# fuzz: two targets at a time, each with one worker.
fuzz() {
  export -f fuzz_one
  local fuzz_kept
  fuzz_kept=$(go env GOCACHE)/fuzz/$(go list -m)
  export fuzz_runs fuzz_kept work
  fuzz_targets | xargs -P 2 -L 1 bash -c 'fuzz_one "$@"' fuzz_one
  local status=$?
  echo "$(fuzz_targets | wc -l) fuzz targets, $fuzz_runs each"
  return $status
}

# idly COMMAND...: takes only what the others leave of one core.
idly() {
  renice -n 19 "$BASHPID" >/dev/null
  chrt --idle --pid 0 "$BASHPID" 2>/dev/null
  GOFLAGS=-p=1 GOMAXPROCS=1 "$@"
}

lint_and_build() {
  lint >"$work/lint.said" 2>&1
  echo $? >"$work/lint.status"
  advisories >"$work/advisories.said" 2>&1
  echo $? >"$work/advisories.status"
  fuzz_builds 1
}

# looked_up says what came of advisories, once lint_and_build has ended.
looked_up() {
  cat "$work/advisories.said"
  [[ $(<"$work/advisories.status") == 0 ]]
}

# linted waits for lint_and_build, which is the process, and says what came of its lint.
linted() {
  wait "$1"
  local built=$?
  cat "$work/lint.said" "$work/built.said"
  [[ $(<"$work/lint.status") == 0 && $built == 0 ]]
}

# compose_valid checks the compose file with every version that is here.
compose_valid() {
  local ok=0
  if have docker-compose; then docker-compose -f docker-compose.yml config -q || ok=1; fi
  if docker compose version >/dev/null 2>&1; then docker compose -f docker-compose.yml config -q || ok=1; fi
  return $ok
}

# no_secrets: the keys are in files, because a default secret is none.
no_secrets() { ! grep -E 'HOLDFAST_(CLUSTER_KEY|API_KEYS):' docker-compose.yml; }

install_tools
if [[ ${1:-} == install ]]; then # Only that; fails when something is missing still.
  left=$(absent | xargs)
  [[ -z $left ]] || echo "still missing: $left"
  [[ -z $left ]]
  exit
fi
have go || { echo "there is no Go on this machine: https://go.dev/dl/"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
go build -o "$work/totals" ./.ci/totals/main.go || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }

# finish prints the totals and ends with their verdict.
finish() {
  say "totals: $packages packages with tests"
  if ((${#flaky[@]} > 0)); then
    echo "FLAKY, failed once and then passed: ${#flaky[@]}"
    printf '  %s\n' "${flaky[@]}"
    if ((${#flaky[@]} > max_flaky)); then
      failed=$((failed + 1))
      echo "FAILED: more than $max_flaky flaky tests"
    fi
  fi
  if ((${#broken[@]} > 0)); then
    echo "FAILED: ${#broken[@]}"
    printf -- '--- FAIL: %s\n' "${broken[@]}"
  fi
  echo "$passed passed, $failed failed, $skipped skipped"
  [[ $failed == 0 ]]
  exit
}

# Tests that drive browsers or whole clusters run one package at a time: two of
# them at once would measure the machine. They are never taken from the cache, which does not see
# the binary that they build and run.
heavy=$(go list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
  grep -E 'chromedp|lab/devcluster' | cut -d' ' -f1 | grep -v '/cli$')
left=$(grep -vE '/(sfu|web|lab/(attack|browser|chaos|devcluster|docker|e2e|load))$' <<<"$heavy")
[[ -z $left ]] || { echo "no step of test.sh runs $left"; echo "0 passed, 1 failed, 0 skipped"; exit 1; }
# What takes longest goes first: beside it the many short ones run, and none is waited for alone.
slow=$(go list ./redisstore ./signaling ./cluster ./orchestrator/history ./lab/hosts ./sfu/forward ./cli ./node ./ring)
# A release is built by the Go tool, which the race detector does not watch.
light="$slow $(go list ./... | grep -vxF -e "$heavy" -e "$slow" | grep -v "/internal/release$")"

if [[ ${1:-} == fuzz ]]; then
  fuzz_runs=${2:-10m} fuzz_only=${3:-.}
  check "fuzz targets" fuzz_builds
  check "fuzzing" fuzz
  finish
fi
check "gofmt" formatted
check "go vet" go vet ./...
check "go vet of the binary of nodes" go vet -tags node . ./cli ./node
if [[ ${1:-} == quick ]]; then # For the time between two edits: no browser, no cluster, no race detector, no fuzzing.
  race=
  # shellcheck disable=SC2086 # the list is to be split
  tests "unit tests" -p 3 -timeout 10m $light
  if have tsc; then check "tsc (the JSDoc types of web/)" tsc -p web/tsconfig.json; else missing "tsc" "tsc"; fi
  finish
fi
bare=
if [[ $(id -u) == 0 ]] && have debootstrap; then bare_machine >"$work/bare.said" 2>&1 & bare=$!; fi
idly lint_and_build >"$work/built.said" 2>&1 & # What follows leaves a part of the machine idle.
building=$!
# The race detector is linked with a C compiler.
race=-race
have gcc || have cc || { race=; missing "race detector" "C compiler"; }

# shellcheck disable=SC2086 # the lists are to be split
# Three packages at a time: those that run servers of Redis, gossip or network namespaces mostly wait.
tests "unit tests${race:+, race detector}" $race -p 3 -timeout 10m $light
if [[ -n $bare ]]; then check "every listed tool can be installed on a bare Debian" wait "$bare"; cat "$work/bare.said"; else missing "the tools on a bare Debian" "debootstrap, or no root,"; fi
tests "media node with a browser${race:+, race detector}" $race -p 2 -parallel 8 -count=1 -timeout 12m ./sfu ./lab/load
# What drives processes and pages needs no race detector: they are built without it, and it takes cores that browsers need.
race=''
# Chaos measures no times, cases of the page mostly wait, each in a browser of its own, and so do the others: they share the machine.
tests "page, attacks and clusters" -p 2 -parallel 4 -count=1 -timeout 15m ./lab/chaos ./web ./lab/attack ./lab/devcluster ./lab/docker ./internal/release
# These wait for each other where they need the machine; what is left over mostly waits.
tests "browsers in clusters" -parallel 32 -count=1 -timeout 40m ./lab/e2e

# Its test reads files outside its module, which the cache of results does not see.
check "Kubernetes manifests" go -C docs/kubernetes/check test -count=1 ./...
check "golangci-lint $lint_version, fuzz targets" linted "$building"
check "known vulnerabilities, govulncheck $vuln_version" looked_up
# Last, alone: some of them ask servers, which answer late on a busy machine.
check "fuzzing" fuzz
# Its certificates live for seconds.
check "certificates of an ACME test server" go -C lab/acme test -count=1 -timeout 10m ./...
check "clients of LiveKit's Go SDK" go -C lab/livekit test -count=1 -timeout 10m ./...
check "webhooks and LiveKit's library" go -C lab/webhook test -count=1 -timeout 10m ./...
if have tsc; then check "tsc (the JSDoc types of web/)" tsc -p web/tsconfig.json; else missing "tsc" "tsc"; fi
if have docker-compose || docker compose version >/dev/null 2>&1; then
  check "docker-compose.yml is valid" compose_valid
  check "docker-compose.yml has no default secrets" no_secrets
else
  missing "docker-compose.yml is valid" "docker-compose"
fi
finish
