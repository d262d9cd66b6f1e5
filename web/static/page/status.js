// How the connection is, where the call lives, and its moves.

import { find, make } from './elements.js';
import { words as qualities } from './quality.js';
import { without } from './sentences.js';

/** @typedef {import('../holdfast/call.js').Call} Call */

/** @type {Record<string, string>} */
const words = {
  joining: 'Joining…',
  connecting: 'Connecting…',
  moving: 'The room is moving to another media server…',
  mending: 'Your connection broke; making it again…',
  reconnecting: 'Reconnecting; sound and picture go on',
  left: 'Not connected',
};

const SHOWN = 12;

export class Status {
  #call;
  #line = find('#status', HTMLElement);
  #state = find('#status-state', HTMLElement);
  #place = find('#status-place', HTMLElement);
  #moves = find('#status-moves', HTMLOListElement);
  /** @type {import('./quality.js').Quality} */
  #quality = 'good';

  /** @param {Call} call */
  constructor(call) {
    this.#call = call;
    this.#moves.replaceChildren();
    for (const type of ['state', 'joined', 'roster']) call.addEventListener(type, () => this.#paint());
    call.addEventListener('mended', (event) => this.#mended(/** @type {CustomEvent} */ (event).detail));
    call.addEventListener('migration', (event) => this.#moved(/** @type {CustomEvent} */ (event).detail));
    this.#paint();
  }

  /** @param {import('./quality.js').Quality} quality */
  judge(quality) {
    this.#quality = quality;
    this.#paint();
  }

  #paint() {
    const { state, node, epoch } = this.#call;
    this.#line.dataset.state = state;
    this.#line.dataset.quality = state === 'live' ? this.#quality : '';
    const text = words[state] ?? `${qualities[this.#quality]} connection`;
    if (this.#state.textContent !== text) this.#state.textContent = text; // Or screen readers hear it again and again.
    this.#place.textContent = node ? `${node} · epoch ${epoch}` : '';
  }

  /** @param {{phase: string, node: string, how?: string, gapMs?: number, lost?: unknown[]}} migration */
  #moved({ phase, node, how, gapMs, lost }) {
    this.#paint();
    if (phase !== 'done') return;
    const item = make('li', 'move', `→ ${node} ${gapMs} ms${without(lost)}`);
    item.title = how === 'restart' ? 'The room moved; on the same connection' : 'The room moved; on a new connection';
    this.#add(item);
  }

  /**
   * The room did not move.
   * @param {{node: string, gapMs: number, lost?: unknown[]}} mend
   */
  #mended({ node, gapMs, lost }) {
    const item = make('li', 'mend', `reconnected ${gapMs} ms${without(lost)}`);
    item.title = `Your connection to ${node} was made again; the room stayed there`;
    this.#add(item);
  }

  /** @param {HTMLElement} item */
  #add(item) {
    this.#moves.prepend(item);
    while (this.#moves.children.length > SHOWN) this.#moves.lastElementChild?.remove();
  }
}
