// One panel at a time, closed with Escape.

import { find } from './elements.js';

/** @typedef {'people' | 'chat' | 'settings' | 'invite'} Panel */

export class Panels {
  #side = find('#side', HTMLElement);
  /** @type {Panel | ''} */
  #open = '';
  /** @type {Element | null} */
  #before = null;
  #onChange;

  /** @param {(open: Panel | '') => void} onChange */
  constructor(onChange) {
    this.#onChange = onChange;
    for (const button of document.querySelectorAll('[data-panel]')) {
      button.addEventListener('click', () => this.toggle(/** @type {Panel} */ (button.getAttribute('data-panel'))));
    }
    for (const button of this.#side.querySelectorAll('.close')) button.addEventListener('click', () => this.close());
  }

  get open() {
    return this.#open;
  }

  /** @param {Panel} panel */
  toggle(panel) {
    if (this.#open === panel) this.close();
    else this.#show(panel);
  }

  /** Closes the open panel. Returns false when no panel was open. */
  close() {
    if (this.#open === '') return false;
    this.#show('');
    if (this.#before instanceof HTMLElement) this.#before.focus();
    return true;
  }

  /** @param {Panel | ''} panel */
  #show(panel) {
    if (this.#open === '') this.#before = document.activeElement;
    this.#open = panel;
    this.#side.hidden = panel === '';
    for (const section of this.#side.children) {
      if (section instanceof HTMLElement) section.hidden = section.id !== `panel-${panel}`;
    }
    for (const button of document.querySelectorAll('[data-panel]')) {
      button.setAttribute('aria-expanded', String(button.getAttribute('data-panel') === panel));
    }
    if (panel !== '') {
      const first = this.#side.querySelector(panel === 'chat' ? '#line' : `#panel-${panel} .close`);
      if (first instanceof HTMLElement) first.focus();
    }
    this.#onChange(panel);
  }
}
