// What a call is doing, in a word. Pure.

/** @typedef {'idle' | 'joining' | 'connecting' | 'live' | 'moving' | 'mending' | 'reconnecting' | 'left'} CallState */

/**
 * Of a person who is in the room.
 * @param {{open: boolean, wentUp: boolean, journey: import('./journey.js').Reason | ''}} call `open`: the session; `wentUp`: media came once
 * @returns {CallState}
 */
export function callState({ open, wentUp, journey }) {
  if (!open) return 'reconnecting';
  if (!wentUp) return 'connecting';
  if (journey === '') return 'live';
  return journey === 'moved' ? 'moving' : 'mending';
}
