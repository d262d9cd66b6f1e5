// What the figures of a check mean for a call. Pure.

/** @typedef {'waiting' | 'running' | 'good' | 'fair' | 'bad' | 'skipped'} State */
/** @typedef {'browser' | 'camera' | 'microphone' | 'service' | 'direct' | 'relay' | 'up' | 'down'} Check */
/** @typedef {'UDP' | 'TCP' | 'TLS'} Way to a relay */

export const CHECKS = /** @type {const} */ (['browser', 'camera', 'microphone', 'service', 'direct', 'relay', 'up', 'down']);

/** A camera of 960 x 540 that others see well; below the second a picture is small or stands still. */
const GOOD_BITS = 900_000;
const FAIR_BITS = 200_000;
const FAIR_LOSS = 0.05;

/**
 * @param {number} bitsPerSecond
 * @param {number} loss 0 to 1
 * @returns {'good' | 'fair' | 'bad'}
 */
export function ofRate(bitsPerSecond, loss) {
  if (bitsPerSecond < FAIR_BITS) return 'bad';
  return bitsPerSecond < GOOD_BITS || loss > FAIR_LOSS ? 'fair' : 'good';
}

/**
 * @param {string} url of a TURN server
 * @returns {Way}
 */
export function wayOf(url) {
  if (url.startsWith('turns:')) return 'TLS';
  return url.endsWith('transport=tcp') ? 'TCP' : 'UDP';
}

/**
 * @param {{way: Way, works: boolean}[]} relays
 * @returns {State}
 */
export function ofRelays(relays) {
  if (relays.length === 0) return 'skipped';
  const works = relays.filter((relay) => relay.works).length;
  if (works === 0) return 'bad';
  return works < relays.length ? 'fair' : 'good';
}

/**
 * Returns the verdict over all checks, or null while a check waits or runs. A missing camera or microphone is only `fair`, because one can still
 * listen. A failed relay does not count, because only networks that block the direct way need a relay.
 * @param {Readonly<Record<Check, State>>} states
 * @returns {'good' | 'fair' | 'bad' | null}
 */
export function verdictOf(states) {
  const all = CHECKS.map((check) => states[check]);
  if (all.includes('waiting') || all.includes('running')) return null;
  if ((/** @type {const} */ (['browser', 'service', 'direct', 'up', 'down'])).some((check) => states[check] === 'bad')) return 'bad';
  if ((/** @type {const} */ (['direct', 'up', 'down'])).some((check) => states[check] !== 'good')) return 'fair';
  return states.camera === 'good' && states.microphone === 'good' ? 'good' : 'fair';
}
