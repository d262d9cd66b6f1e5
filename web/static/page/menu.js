// A menu beside its button: arrow keys, Home and End go through it; Escape, Tab and a click elsewhere close it.

import { make } from './elements.js';

/** @typedef {{label: string, name?: string, danger?: boolean, checked?: boolean, onSelect: () => void}} Item `name`: for who hears it, where the label is a picture; `checked`: one of several is chosen */

/** Between the button and the menu, and to the screen's edge. */
const GAP_PX = 6;

export class Menu {
  #root = make('div', 'menu');
  /** @type {HTMLElement | null} */
  #button = null;

  /**
   * @param {HTMLElement} home where it stands in the document
   * @param {string} className
   * @param {AbortSignal} signal ends it
   */
  constructor(home, className, signal) {
    if (className) this.#root.classList.add(className);
    this.#root.setAttribute('role', 'menu');
    this.#root.hidden = true;
    home.append(this.#root);
    this.#root.addEventListener('keydown', (event) => this.#onKey(event));
    this.#root.addEventListener('focusout', ({ relatedTarget }) => {
      if (!(relatedTarget instanceof Node && (this.#root.contains(relatedTarget) || relatedTarget === this.#button))) this.close(false);
    });
    addEventListener('pointerdown', ({ target }) => {
      if (target instanceof Node && !this.#root.contains(target) && !this.#button?.contains(target)) this.close(false);
    }, { signal });
    addEventListener('resize', () => this.close(false), { signal });
    signal.addEventListener('abort', () => this.#root.remove());
  }

  /** Whose it is; null while it is closed. */
  get button() {
    return this.#button;
  }

  /**
   * @param {HTMLElement} button
   * @param {string} name
   * @param {Item[]} items
   */
  toggle(button, name, items) {
    if (this.#button === button) {
      this.close();
      return;
    }
    this.close(false);
    if (items.length === 0) return;
    this.#button = button;
    button.setAttribute('aria-expanded', 'true');
    this.#root.setAttribute('aria-label', name);
    this.#root.replaceChildren(...items.map((item) => this.#item(item)));
    this.#root.hidden = false;
    this.#place(button.getBoundingClientRect());
    this.#focus(0);
  }

  /** @param {boolean} [back] the focus goes back to the button */
  close(back = true) {
    const button = this.#button;
    if (!button) return false;
    this.#button = null; // First: focus leaves what is hidden.
    button.setAttribute('aria-expanded', 'false');
    this.#root.hidden = true;
    if (back) button.focus();
    return true;
  }

  /** @param {Item} item */
  #item({ label, name, danger, checked, onSelect }) {
    const button = make('button', danger ? 'danger' : '', label);
    button.type = 'button';
    button.setAttribute('role', checked === undefined ? 'menuitem' : 'menuitemradio');
    if (checked !== undefined) button.ariaChecked = String(checked);
    button.tabIndex = -1;
    if (name) [button.title, button.ariaLabel] = [name, name];
    button.addEventListener('click', () => {
      this.close();
      onSelect();
    });
    return button;
  }

  /**
   * Under the button, else over it, always on the screen.
   * @param {DOMRect} at
   */
  #place(at) {
    const { width, height } = this.#root.getBoundingClientRect();
    const home = /** @type {Element} */ (this.#root.parentElement).getBoundingClientRect();
    const below = at.bottom + GAP_PX + height < innerHeight;
    this.#root.style.setProperty('top', `${below ? at.bottom + GAP_PX : Math.max(Math.min(at.top, innerHeight) - GAP_PX - height, GAP_PX)}px`);
    this.#root.style.setProperty('left', `${Math.min(Math.max(at.left + (at.width - width) / 2, home.left + GAP_PX), home.right - width - GAP_PX)}px`);
  }

  /** @param {number} index */
  #focus(index) {
    const items = [...this.#root.children];
    const item = items[(index + items.length) % items.length];
    if (item instanceof HTMLElement) item.focus();
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const at = [...this.#root.children].indexOf(/** @type {Element} */ (document.activeElement));
    const right = getComputedStyle(this.#root).direction === 'rtl' ? -1 : 1;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => this.#focus(at + 1), ArrowRight: () => this.#focus(at + right),
      ArrowUp: () => this.#focus(at - 1), ArrowLeft: () => this.#focus(at - right),
      Home: () => this.#focus(0), End: () => this.#focus(-1), Escape: () => this.close(), Tab: () => this.close(),
    };
    if (!Object.hasOwn(keys, event.key)) return;
    if (event.key !== 'Tab') event.preventDefault();
    event.stopPropagation(); // Escape closes no panel with it.
    keys[event.key]();
  }
}
