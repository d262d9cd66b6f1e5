package history

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-rtc/holdfast/pin"
)

// record gathers a history, in nanoseconds since its beginning.
type record struct {
	began time.Time

	mu      sync.Mutex // guards the fields below
	ops     []porcupine.Operation
	clients map[string]int
	faults  []string // wrong in any order
	failed  map[string]int
	told    pin.Fence // the highest that anybody was told of
	closed  bool      // what happens now does not count
}

func newRecord() *record {
	return &record{began: time.Now(), clients: make(map[string]int), failed: make(map[string]int)}
}

func (r *record) now() int64 { return int64(time.Since(r.began)) }

func (r *record) add(in input, out output, call, back int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	id, ok := r.clients[in.who]
	if !ok { // A lane of the drawing.
		id = len(r.clients)
		r.clients[in.who] = id
	}
	in.tried = slices.Clone(in.tried)
	r.told = higher(r.told, out.pin.Fence)
	r.ops = append(r.ops, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: call, Return: back})
}

// known is the highest fence that anybody was told of.
func (r *record) known() pin.Fence {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// pending records a write of unknown outcome, sent at call.
func (r *record) pending(who string, w write, call int64) { r.unanswered(who, w, call, -1) }

// unanswered records a write that took effect by back, though its sender was not told.
func (r *record) unanswered(who string, w write, call, back int64) {
	r.add(input{kind: kindPending, who: who + " (unanswered)", tried: []write{w}}, output{}, call, back)
}

// lose records that the store now has v, through no operation.
func (r *record) lose(what string, v value, from, to int64) {
	r.add(input{kind: kindLose, who: "store", asked: what, lost: v}, output{}, from, to)
}

// repeated records that writes under way while the store was down, from from to back, may have been sent twice: the killed
// store has done the first and not answered.
func (r *record) repeated(from, back int64) {
	r.mu.Lock()
	ops := slices.Clone(r.ops)
	r.mu.Unlock()
	for _, op := range ops {
		if in := op.Input.(input); in.kind == kindWrite && op.Call < back && op.Return > from {
			r.unanswered(in.who, in.tried[0], op.Call, op.Return)
		}
	}
}

// fault records what no order could explain.
func (r *record) fault(format string, args ...any) {
	text := fmt.Sprintf("%v: %s", time.Duration(r.now()), fmt.Sprintf(format, args...))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, text)
}

func (r *record) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *record) refused(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed[why]++
}

// history has pending operations end after all others.
func (r *record) history() []porcupine.Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var last int64
	for _, op := range r.ops {
		last = max(last, op.Return, op.Call)
	}
	ops := slices.Clone(r.ops)
	for i := range ops {
		if ops[i].Return < 0 {
			ops[i].Return = last + 1
		}
	}
	return ops
}

// text is for people.
func text(ops []porcupine.Operation) string {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	var b strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&b, "%13v %13v  %s\n", time.Duration(op.Call), time.Duration(op.Return), describe(op.Input.(input), op.Output.(output)))
	}
	return b.String()
}

// verdict is empty when nothing was wrong.
type verdict struct {
	faults []string
	ops    []porcupine.Operation
	info   porcupine.LinearizationInfo
	notes  notes
}

// checkLimit: a history takes about a millisecond.
const checkLimit = 30 * time.Second

func evaluate(r *record) verdict {
	v := verdict{faults: r.faults, ops: r.history()}
	limit := checkLimit
	if len(v.faults) > 0 { // The search for an impossible order may take very long.
		limit = time.Second
	}
	result, info := porcupine.CheckOperationsVerbose(model(), v.ops, limit)
	v.info = info
	switch {
	case result == porcupine.Illegal:
		v.faults = append(v.faults, "the history is not linearizable")
	case result == porcupine.Unknown && limit == checkLimit:
		v.faults = append(v.faults, fmt.Sprintf("the history was not judged within %v", checkLimit))
	}
	return v
}

// report draws the history into a file of t.
func (v verdict) report(t *testing.T, name string) {
	t.Helper()
	file := t.ArtifactDir() + "/" + name + ".html"
	if err := porcupine.VisualizePath(model(), v.info, file); err != nil {
		file = err.Error()
	}
	t.Errorf("%s\n%s\nhistory (%d operations; drawn in %s):\n%s", name, strings.Join(v.faults, "\n"), len(v.ops), file, text(v.ops))
}
