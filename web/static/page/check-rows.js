// One row for each check: what it is, how it went, and what that means.

import { CHECKS } from './check-verdict.js';
import { make } from './elements.js';
import { say } from './words.js';

/** @typedef {import('./check-verdict.js').Check} Check */
/** @typedef {import('./check-verdict.js').State} State */

export class Rows {
  /** @type {Record<Check, State>} */
  states = { browser: 'waiting', camera: 'waiting', microphone: 'waiting', service: 'waiting', direct: 'waiting', relay: 'waiting', up: 'waiting', down: 'waiting' };
  /** @type {Map<Check, {row: HTMLElement, state: HTMLElement, text: HTMLElement}>} */
  #rows = new Map();

  /** @param {HTMLElement} list */
  constructor(list) {
    for (const check of CHECKS) {
      const [row, state, text] = [make('li', ''), make('p', 'state'), make('p', 'text')];
      row.dataset.check = check;
      row.append(make('h2', '', say(`check.${check}`)), state, text);
      list.append(row);
      this.#rows.set(check, { row, state, text });
    }
    this.reset();
  }

  reset() {
    for (const check of CHECKS) this.set(check, 'waiting');
  }

  /**
   * @param {Check} check
   * @param {State} state
   * @param {string} [sentence]
   */
  set(check, state, sentence = '') {
    this.states[check] = state;
    const parts = this.#rows.get(check);
    if (!parts) return;
    parts.row.dataset.state = state;
    parts.state.textContent = say(`check.state.${state}`);
    parts.text.textContent = sentence;
  }

  /**
   * @param {Check} check
   * @param {HTMLElement} element
   */
  show(check, element) {
    this.#rows.get(check)?.row.append(element);
  }

  /** For whoever is asked for help. */
  get text() {
    return [...this.#rows].map(([check, { state, text }]) => [`${say(`check.${check}`)}: ${state.textContent}`, text.textContent].filter(Boolean).join(' · ')).join('\n');
  }
}
