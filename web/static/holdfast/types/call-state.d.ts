/** @typedef {'idle' | 'joining' | 'connecting' | 'live' | 'moving' | 'mending' | 'reconnecting' | 'left'} CallState */
/**
 * Returns the state of a call whose person is in the room.
 * @param {{open: boolean, wentUp: boolean, journey: import('./journey.js').Reason | ''}} call `open`: the session; `wentUp`: media came once
 * @returns {CallState}
 */
export function callState({ open, wentUp, journey }: {
    open: boolean;
    wentUp: boolean;
    journey: import('./journey.js').Reason | '';
}): CallState;
export type CallState = 'idle' | 'joining' | 'connecting' | 'live' | 'moving' | 'mending' | 'reconnecting' | 'left';
