// The journeys that media makes: why, and what is told of one when it is over.

/**
 * Why a journey is made. `first`: the call begins. `moved`: the room has another node. `network`: our own path
 * broke. `lost`: the same node has the room but lost our connection. `frozen`: it does not show what it should.
 * `asked`: it cannot use what we send. `rejoined`: a new session.
 * @typedef {'first' | 'moved' | 'network' | 'lost' | 'frozen' | 'asked' | 'rejoined'} Reason
 */
/**
 * `gapMs` is the longest time without a delivery of any stream that ran before and runs again; `lost` are those that do not run again.
 * @typedef {{node: string, epoch: number, how: import('./protocol.js').How, attempt: number, gapMs: number, lost: import('./protocol.js').Stream[]}} Journey
 */

/**
 * Whether a journey interrupts what somebody sees and hears. A first one does not; a new session's is another call.
 * @param {Reason} reason
 */
export function isMeasured(reason) {
  return reason !== 'first' && reason !== 'rejoined';
}

/**
 * Whether a journey renews a connection that stands, to the node that has it.
 * @param {Reason} reason
 */
export function isRepair(reason) {
  return reason === 'frozen' || reason === 'asked';
}
