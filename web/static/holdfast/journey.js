// The journeys that media makes: why, and what is told of one when it is over.

/**
 * Why a journey is made. `first`: the call begins. `moved`: the room has another node. `network`: our own path
 * broke. `lost`: the same node has the room but lost our connection. `rejoined`: a new session.
 * @typedef {'first' | 'moved' | 'network' | 'lost' | 'rejoined'} Reason
 */
/** @typedef {{node: string, epoch: number, how: import('./protocol.js').How, attempt: number, gapMs: number}} Journey */

/**
 * Whether a journey interrupts what somebody sees and hears. A first one does not; a new session's is another call.
 * @param {Reason} reason
 */
export function isMeasured(reason) {
  return reason === 'moved' || reason === 'lost' || reason === 'network';
}
