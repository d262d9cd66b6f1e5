// Package history records what concurrent callers see of one room's pin while everything fails around them, and has
// porcupine check whether some order of the operations explains all of it. A check that gives up fails the test.
//
// The real Orchestrator and pinowner.Owner run on a simulated cluster: three media nodes, three signaling nodes with late and
// differing views, one store. Time is simulated. A seed gives the whole schedule of faults; one that fails is shrunk and
// drawn into an HTML file.
//
//	go test ./orchestrator/history -v                                        # 58 schedules of each mix of faults
//	HOLDFAST_HISTORIES=10000 go test ./orchestrator/history -run Linear -v -timeout 1h
//	HOLDFAST_HISTORY_SEED=433 go test ./orchestrator/history -run Linear -v  # one schedule of each mix
//
// Every schedule must show:
//   - A returned pin was current during the call, and its boot was not known to be dead to the caller.
//   - Fences grow and no two are equal. A claim is above every fence that anybody was told of.
//   - A pin is replaced by a higher one only with a justification that the call had: the boot was thought dead, the media
//     node refused the room, or another one said that it has the room open.
//   - A media node never serves under a lower fence than before, and opens no room without asking the store.
//   - No second media node begins to serve a room that a live one serves under the highest fence, except after a justified
//     move before or during its opening, when it raises its own fence, or when a majority let it in without the store.
//   - Two nodes serve side by side only until the lower one's next refresh is answered.
//   - A minute after the last fault one media node serves the room, and every signaling node names it.
//
// A write of which nobody was told is recorded with the moment at which it took effect. A write without effect is not recorded.
// The mixes of faults are requests late, lost and repeated; kills, restarts, false deaths, full nodes; processes cut off from
// the store; the store emptied, rolled back, damaged, read-only; wrong clocks, and a store's that is ahead for a while; sweeps; nodes that do not answer.
//
// -run Broken builds faults of the product in, and finds each. -run RealStores places a room on miniredis and redis-server.
// A pause of one process is left to the tests of the pin owner, a frozen store to redisstore. Everything is in the tests.
package history
