// The discreet line below: where the call lives, and every move it has made.

import { find } from './elements.js';

/** @typedef {import('../holdfast/call.js').Call} Call */

/** @type {Record<string, string>} */
const words = {
  joining: 'Joining…',
  connecting: 'Connecting…',
  live: 'Connected',
  moving: 'Moving to another node…',
  reconnecting: 'Reconnecting; audio and video go on',
  left: 'Not connected',
};

/** Moves shown; the oldest fall off. */
const SHOWN = 12;

/**
 * @param {Call} call
 */
export function showStatus(call) {
  const line = find('#status', HTMLElement);
  const state = find('#status-state', HTMLElement);
  const place = find('#status-place', HTMLElement);
  const moves = find('#status-moves', HTMLOListElement);
  moves.replaceChildren();
  const paint = () => {
    line.dataset.state = call.state;
    state.textContent = words[call.state] ?? '';
    place.textContent = call.node ? `${call.node} · epoch ${call.epoch}` : '';
  };
  for (const type of ['state', 'joined', 'migration', 'roster']) call.addEventListener(type, paint);
  call.addEventListener('migration', (event) => {
    const { phase, node, how, gapMs } = /** @type {CustomEvent} */ (event).detail;
    if (phase !== 'done') return;
    const item = document.createElement('li');
    item.textContent = `→ ${node} ${gapMs} ms`;
    item.title = how === 'restart' ? 'On the same connection' : 'On a new connection';
    moves.prepend(item);
    while (moves.children.length > SHOWN) moves.lastElementChild?.remove();
  });
  paint();
}
