// How the connection is; in dev also where the call lives, and its moves, which Details tells everywhere.

import { find, make } from './elements.js';
import { wasKilled } from './kill.js';
import { without } from './sentences.js';
import { lasted, say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {{at: number, text: string, means: string}} Move at is Date.now() */

const told = /** @type {const} */ (['joining', 'connecting', 'moving', 'mending', 'reconnecting', 'left']);

const SHOWN = 12;

/**
 * What `how` of a move means.
 * @param {string} [how]
 */
function meant(how) {
  if (how === 'restart') return say('moves.kept');
  return say(how === 'live' ? 'moves.live' : 'moves.new');
}

export class Status {
  #call;
  #line = find('#status', HTMLElement);
  #state = find('#status-state', HTMLElement);
  #place = find('#status-place', HTMLElement);
  #moves = find('#status-moves', HTMLOListElement);
  /** @type {import('./quality.js').Quality} */
  #quality = 'good';
  /** Where the call lived before the move that is under way; without one, where it lives. */
  #from = '';
  /** Whether a move is under way. */
  #moving = false;
  /**
   * The newest first.
   * @type {Move[]}
   */
  moves = [];

  /** @param {Call} call */
  constructor(call) {
    this.#call = call;
    this.#moves.replaceChildren();
    for (const type of ['state', 'joined', 'roster']) call.addEventListener(type, () => this.#paint());
    call.addEventListener('mended', (event) => this.#mended(/** @type {CustomEvent} */ (event).detail));
    call.addEventListener('continued', (event) => this.#continued(/** @type {CustomEvent} */ (event).detail));
    call.addEventListener('migration', (event) => this.#moved(/** @type {CustomEvent} */ (event).detail));
    this.#paint();
  }

  /** @param {boolean} shown whether names of nodes mean something to this person */
  showNodes(shown) {
    this.#place.hidden = this.#moves.hidden = !shown;
  }

  /** @param {import('./quality.js').Quality} quality */
  judge(quality) {
    this.#quality = quality;
    this.#paint();
  }

  #paint() {
    const { state, node } = this.#call;
    if (state === 'live' && !this.#moving) this.#from = node;
    this.#line.dataset.state = state;
    this.#line.dataset.quality = state === 'live' ? this.#quality : '';
    const text = say(`status.${told.find((one) => one === state) ?? this.#quality}`);
    if (this.#state.textContent !== text) this.#state.textContent = text; // Or screen readers hear it again and again.
    this.#place.textContent = state === 'live' || state === 'reconnecting' ? node : ''; // No node that may be dead.
  }

  /** @param {{phase: string, node: string, how?: string, gapMs?: number, lost?: unknown[]}} migration */
  #moved({ phase, node, how, gapMs = 0, lost }) {
    this.#moving = phase !== 'done';
    const from = this.#from;
    this.#paint();
    if (phase !== 'done') return;
    this.#add('move', chip(say(wasKilled(from) ? 'moves.killed' : 'moves.to', { from, node, gap: lasted(gapMs) }), lost), meant(how));
  }

  /**
   * The room moved, and nobody's connection changed.
   * @param {{node: string}} place
   */
  #continued({ node }) {
    const from = this.#from;
    this.#paint();
    this.#add('move', say(wasKilled(from) ? 'moves.killed.standby' : 'moves.to.standby', { from, node }), say('moves.standby'));
  }

  /**
   * The room did not move.
   * @param {{node: string, gapMs: number, lost?: unknown[]}} mend
   */
  #mended({ node, gapMs, lost }) {
    this.#add('mend', chip(say('moves.mended', { gap: lasted(gapMs) }), lost), say('moves.mended.means', { node }));
  }

  /**
   * @param {'move' | 'mend'} kind
   * @param {string} text
   * @param {string} means
   */
  #add(kind, text, means) {
    const item = make('li', kind, text);
    item.title = means;
    this.#moves.prepend(item);
    this.moves = [{ at: Date.now(), text, means }, ...this.moves].slice(0, SHOWN);
    while (this.#moves.children.length > SHOWN) this.#moves.lastElementChild?.remove();
  }
}

/**
 * @param {string} text
 * @param {unknown[]} [lost]
 */
const chip = (text, lost) => [text, without(lost)].filter(Boolean).join(' · ');
