/**
 * Why a connection is made or renewed. `first`: the call begins. `moved`: the room has another media node. `network`: the client's own network
 * path broke. `lost`: the media node lost the connection. `frozen`: streams that should be shown are not. `asked`: the media node cannot use
 * what the client sends. `rejoined`: the session is a new one. `prepared`: another node needs an answer that names it, so that it can go on one day.
 * @typedef {'first' | 'moved' | 'network' | 'lost' | 'frozen' | 'asked' | 'rejoined' | 'prepared'} Reason
 */
/**
 * A finished journey. `gapMs` is the longest gap of any stream that runs again; `lost` lists the streams that do not run again.
 * @typedef {{node: string, epoch: number, how: import('./protocol.js').How, attempt: number, gapMs: number, lost: import('./protocol.js').Stream[]}} Journey
 */

/**
 * Whether a journey interrupts what somebody sees and hears.
 * @param {Reason} reason
 */
export function isMeasured(reason) {
  return reason !== 'first' && reason !== 'rejoined' && reason !== 'prepared';
}

/**
 * Whether a journey renews a connection that stands.
 * @param {Reason} reason
 */
export function isRepair(reason) {
  return reason === 'frozen' || reason === 'asked' || reason === 'prepared';
}
