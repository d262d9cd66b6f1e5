// One line over the tiles while the call does not work as a whole: what is lost, what still works, what happens next.

import { find } from './elements.js';
import { say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {'' | 'signaling' | 'everything' | 'media' | 'unavailable' | 'limited'} Outage */

/** How long a call must not work before the banner says so. Most moves and reconnects are over sooner. */
const SHOWN_AFTER_MS = 2500;
/** After this time the room counts as having no node to move to, because a move would be over otherwise. */
const UNAVAILABLE_AFTER_MS = 12000;
/** How long one `stalled` event counts. The event comes every second while nothing arrives. */
const STALLED_MS = 2500;
const EVERY_MS = 500;

/**
 * @param {string} state of the call
 * @param {boolean} silent nothing arrives
 */
const works = (state, silent) => (state === 'live' ? !silent : !['moving', 'mending', 'reconnecting'].includes(state));

/**
 * @param {{state: string, brokenMs: number, silent: boolean}} call `brokenMs`: for how long it has not worked
 * @returns {Outage}
 */
export function outage({ state, brokenMs, silent }) {
  if (works(state, silent) || brokenMs < SHOWN_AFTER_MS) return '';
  if (state === 'reconnecting') return silent ? 'everything' : 'signaling';
  return brokenMs < UNAVAILABLE_AFTER_MS ? 'media' : 'unavailable';
}

/**
 * @param {Call} call
 * @param {(silent: boolean) => void} onSilence nobody is heard or seen, or somebody is again
 */
export function watchOutages(call, onSilence) {
  const banner = find('#banner', HTMLElement);
  let stalledAt = -Infinity;
  let brokenAt = performance.now();
  let silent = false;
  /** @type {Outage | null} */
  let shown = null;
  const look = () => {
    const now = performance.now();
    const { state } = call;
    const still = now - stalledAt < STALLED_MS || state === 'moving' || state === 'mending';
    // While neither socket nor media works the library tries anew, and no stall is told.
    if (still !== silent && !(state === 'reconnecting' && silent)) onSilence(silent = still);
    if (works(state, silent)) brokenAt = now;
    const kind = outage({ state, brokenMs: now - brokenAt, silent }) || (call.limited && works(state, silent) ? 'limited' : '');
    if (kind === shown) return;
    shown = kind;
    find('#banner-title', HTMLElement).textContent = kind && say(`outage.${kind}`);
    find('#banner-text', HTMLElement).textContent = kind && say(`outage.${kind}.next`);
    banner.dataset.outage = kind;
    banner.hidden = kind === '';
  };
  call.addEventListener('stalled', () => {
    stalledAt = performance.now();
    look();
  });
  for (const type of ['state', 'limited']) call.addEventListener(type, look);
  const timer = setInterval(look, EVERY_MS);
  call.addEventListener('left', () => {
    clearInterval(timer);
    banner.hidden = true;
  }, { once: true });
  look();
}
