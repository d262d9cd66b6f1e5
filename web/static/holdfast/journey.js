/**
 * `first`: the call begins. `moved`: the room has another node. `network`: our own path broke. `lost`: the node lost
 * our connection. `frozen`: it does not show what it should. `asked`: it cannot use what we send. `rejoined`: a new
 * session.
 * @typedef {'first' | 'moved' | 'network' | 'lost' | 'frozen' | 'asked' | 'rejoined'} Reason
 */
/**
 * `gapMs` is the longest gap of any stream that runs again; `lost` are those that do not.
 * @typedef {{node: string, epoch: number, how: import('./protocol.js').How, attempt: number, gapMs: number, lost: import('./protocol.js').Stream[]}} Journey
 */

/**
 * Whether a journey interrupts what somebody sees and hears.
 * @param {Reason} reason
 */
export function isMeasured(reason) {
  return reason !== 'first' && reason !== 'rejoined';
}

/**
 * Whether a journey renews a connection that stands.
 * @param {Reason} reason
 */
export function isRepair(reason) {
  return reason === 'frozen' || reason === 'asked';
}
