// What the page shows of the call, and which streams must therefore arrive.

import { isExpected } from './freeze.js';
import { slotKey, streamOf } from './slots.js';

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./protocol.js').Want} Want */

export class View {
  /** @type {Want[]} */
  #wants = [];
  /**
   * The slotKeys of the sources that an application's transform drops.
   * @type {Set<string>}
   */
  #unreadable = new Set();

  get wants() {
    return this.#wants;
  }

  /**
   * @param {Want[]} wants
   * @returns whether that is another view
   */
  set(wants) {
    if (JSON.stringify(wants) === JSON.stringify(this.#wants)) return false;
    this.#wants = wants;
    return true;
  }

  /**
   * @param {string} peer
   * @param {Source} source
   * @param {boolean} unreadable
   */
  setUnreadable(peer, source, unreadable) {
    if (unreadable) this.#unreadable.add(slotKey(peer, source));
    else this.#unreadable.delete(slotKey(peer, source));
  }

  /** @param {string} peer */
  forget(peer) {
    for (const key of this.#unreadable) if (streamOf(key).peer === peer) this.#unreadable.delete(key);
  }

  /**
   * @param {import('./protocol.js').Stream} stream
   * @param {import('./protocol.js').RosterEntry[]} roster
   */
  expects(stream, roster) {
    if (this.#unreadable.has(slotKey(stream.peer, stream.source))) return false;
    return isExpected(stream, { roster, wants: this.#wants, hidden: globalThis.document?.visibilityState === 'hidden' });
  }
}
