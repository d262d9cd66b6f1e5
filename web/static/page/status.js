// How the connection is, where the call lives, and its moves.

import { find, make } from './elements.js';
import { without } from './sentences.js';
import { lasted, say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */

const told = /** @type {const} */ (['joining', 'connecting', 'moving', 'mending', 'reconnecting', 'left']);

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
    const { state, node } = this.#call;
    this.#line.dataset.state = state;
    this.#line.dataset.quality = state === 'live' ? this.#quality : '';
    const text = say(`status.${told.find((one) => one === state) ?? this.#quality}`);
    if (this.#state.textContent !== text) this.#state.textContent = text; // Or screen readers hear it again and again.
    this.#place.textContent = state === 'live' || state === 'reconnecting' ? node : ''; // No node that may be dead.
  }

  /** @param {{phase: string, node: string, how?: string, gapMs?: number, lost?: unknown[]}} migration */
  #moved({ phase, node, how, gapMs = 0, lost }) {
    this.#paint();
    if (phase !== 'done') return;
    const item = make('li', 'move', chip(say('moves.to', { node, gap: lasted(gapMs) }), lost));
    item.title = say(how === 'restart' ? 'moves.kept' : 'moves.new');
    this.#add(item);
  }

  /**
   * The room did not move.
   * @param {{node: string, gapMs: number, lost?: unknown[]}} mend
   */
  #mended({ node, gapMs, lost }) {
    const item = make('li', 'mend', chip(say('moves.mended', { gap: lasted(gapMs) }), lost));
    item.title = say('moves.mended.means', { node });
    this.#add(item);
  }

  /** @param {HTMLElement} item */
  #add(item) {
    this.#moves.prepend(item);
    while (this.#moves.children.length > SHOWN) this.#moves.lastElementChild?.remove();
  }
}

/**
 * @param {string} text
 * @param {unknown[]} [lost]
 */
const chip = (text, lost) => [text, without(lost)].filter(Boolean).join(' · ');
