// The state of a call in one word, derived from its session and its media. Pure.

/** @typedef {'idle' | 'joining' | 'connecting' | 'live' | 'moving' | 'mending' | 'reconnecting' | 'left'} CallState */

/**
 * Returns the state of a call whose person is in the room.
 * @param {{open: boolean, wentUp: boolean, journey: import('./journey.js').Reason | ''}} call `open`: the session; `wentUp`: media came once
 * @returns {CallState}
 */
export function callState({ open, wentUp, journey }) {
  if (!open) return 'reconnecting';
  if (!wentUp) return 'connecting';
  if (journey === '') return 'live';
  return journey === 'moved' ? 'moving' : 'mending';
}
