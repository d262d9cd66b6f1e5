package sfu

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/holdfast-rtc/holdfast/control"
)

func (s *service) Process(_ context.Context, request *control.ProcessRequest) (*control.ProcessReply, error) {
	if request.GetCollect() {
		runtime.GC() // pools survive one collection
		debug.FreeOSMemory()
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return &control.ProcessReply{
		Node: string(s.node.cfg.Node), Boot: string(s.node.cfg.Boot),
		Goroutines: uint64(runtime.NumGoroutine()), HeapBytes: memory.HeapAlloc, Panics: s.node.panics.Count(),
	}, nil
}
