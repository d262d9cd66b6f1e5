// Package history records what concurrent signaling nodes and owners do to one room's pin, and judges
// the record: is there one order of the operations, each at a moment between its
// call and its return, in which every one of them saw and left what it says it did? It
// runs the real Orchestrator and PinOwner, on a simulated cluster in time of its own with
// thousands of random schedules of faults, and on real stores that are killed.
//
// A schedule is wholly given by its seed. Everything is in the tests; orchestrator/DESIGN.md, "Checked
// histories", says what the model demands and what it leaves out.
package history
