// How good a connection is, in a word. Pure.

/** @typedef {'good' | 'weak' | 'lost'} Quality */
/**
 * What one m-line received since the last look. `expected`: media should have arrived; `paused`: the node holds the media back.
 * @typedef {{paused?: boolean, kind: 'audio' | 'video', expected: boolean, packets: number, lost: number, frames: number}} Received
 */

const LOSSY = 0.05;
/** A picture with fewer frames a second counts as weak, because it looks like a slide show. */
const FEW_FRAMES = 5;
/** So many of the others, and it is us. */
const MOST = 2 / 3;
/** From this round-trip time on, people begin to talk over each other. */
const SLOW_MS = 400;

/**
 * Returns the quality of a peer's media as it arrives here, or null when nothing is expected.
 * @param {Received[]} received
 * @param {number} seconds since the last look
 * @returns {Quality | null}
 */
export function ofPeer(received, seconds) {
  const expected = received.filter((one) => one.expected && !one.paused);
  if (received.some((one) => one.expected && one.paused)) return 'weak';
  if (expected.length === 0 || seconds <= 0) return null;
  if (expected.every(({ packets }) => packets === 0)) return 'lost';
  const weak = expected.some(({ kind, packets, lost, frames }) => packets === 0
    || lost / Math.max(packets + lost, 1) > LOSSY
    || (kind === 'video' && frames / seconds < FEW_FRAMES));
  return weak ? 'weak' : 'good';
}

/**
 * When our own connection is not good the others are not to blame.
 * @param {Quality} own
 * @param {Map<string, Quality | null>} others
 * @returns {Map<string, Quality | null>}
 */
export function fair(own, others) {
  return own === 'good' ? others : new Map([...others].map(([peer, quality]) => [peer, quality === 'weak' ? null : quality]));
}

/**
 * Of oneself.
 * @param {{state: string, rttMs: number, sentLoss: number, held: boolean, peers: (Quality | null)[]}} call `held`: the node holds pictures back, because our way is too narrow
 * @returns {Quality}
 */
export function ofSelf({ state, rttMs, sentLoss, held, peers }) {
  if (state !== 'live' && state !== 'reconnecting') return 'lost';
  const judged = peers.filter((quality) => quality !== null);
  // When nearly everybody is bad, it is likelier our own connection.
  if (judged.length > 1 && judged.every((quality) => quality === 'lost')) return 'lost';
  if (state === 'reconnecting' || held || rttMs > SLOW_MS || sentLoss > LOSSY) return 'weak';
  const bad = judged.filter((quality) => quality !== 'good').length;
  if (judged.length > 1 && bad > judged.length * MOST) return 'weak';
  return 'good';
}
