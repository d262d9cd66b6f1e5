// In the People panel: whom to ring, and what became of it.

import { find, make, who } from './elements.js';
import { keepMet, meant, readMet } from './met.js';
import { notice, whisper } from './notices.js';
import { say } from './words.js';

/** @typedef {import('../holdfast/call.js').Call} Call */
/** @typedef {import('./ringing.js').Outgoing} Outgoing */

/** How long an ended ring stays in the list. */
const SHOWN_MS = 20_000;

export class RingPanel {
  #call;
  #ringing;
  #identityOf;
  #form = find('#ringing', HTMLFormElement);
  #field = find('#ring-to', HTMLInputElement);
  #list = find('#rings', HTMLElement);
  /** @type {Map<string, HTMLElement>} */
  #rows = new Map();

  /**
   * @param {Call} call
   * @param {import('./ringing.js').Ringing} ringing
   * @param {{offered: boolean, identityOf: (written: string) => string}} options
   */
  constructor(call, ringing, { offered, identityOf }) {
    this.#call = call;
    this.#ringing = ringing;
    this.#identityOf = identityOf;
    this.#form.hidden = !offered;
    this.#list.replaceChildren();
    this.#list.hidden = true;
    const stop = new AbortController();
    const { signal } = stop;
    call.addEventListener('left', () => stop.abort(), { once: true });
    if (!offered) return;
    this.#form.addEventListener('submit', (event) => this.#submit(event), { signal });
    call.addEventListener('roster', () => this.#meet(), { signal });
    ringing.addEventListener('outgoing', (event) => this.#paint(/** @type {CustomEvent} */ (event).detail.ring), { signal });
    this.#meet();
  }

  /**
   * @param {string} identity
   * @param {string} name
   */
  ring(identity, name) {
    if (this.#call.roster.some((entry) => entry.identity === identity)) notice(say('ring.here', { name }));
    else this.#ringing.ring(identity, name, this.#call.room);
  }

  /** @param {Event} event */
  #submit(event) {
    event.preventDefault();
    const written = this.#field.value.trim();
    if (written === '') return;
    const { identity, name } = meant(written, readMet(), this.#identityOf);
    this.#field.value = '';
    this.ring(identity, name);
  }

  #meet() {
    const { roster, peer } = this.#call;
    const self = roster.find((entry) => entry.peer === peer)?.identity;
    keepMet(roster.filter(({ identity }) => identity !== self));
    const absent = readMet().filter(({ identity }) => !roster.some((entry) => entry.identity === identity));
    find('#ring-known', HTMLDataListElement).replaceChildren(...absent.map(({ name }) => new Option(name)));
  }

  /** @param {Outgoing} ring */
  #paint({ id, name, state }) {
    const row = this.#rows.get(id) ?? make('li', 'person');
    const open = state === 'calling' || state === 'ringing';
    if (!this.#rows.has(id)) {
      const stop = make('button', 'quiet', say('ring.stop'));
      stop.type = 'button';
      stop.setAttribute('aria-label', say('ring.stop.name', { name }));
      stop.addEventListener('click', () => {
        this.#ringing.stop(id);
        this.#field.focus();
      });
      row.append(who(name), make('span', 'ago'), stop);
      this.#rows.set(id, row);
      this.#list.prepend(row);
    }
    row.dataset.state = state;
    const [, word, stop] = row.children;
    word.textContent = say(`ring.is.${state}`);
    if (stop instanceof HTMLElement) stop.hidden = !open;
    this.#list.hidden = false;
    // The row says it where it is in sight.
    if (open || state === 'accepted' || this.#list.offsetParent !== null) whisper(say(`ring.${state}`, { name }));
    else notice(say(`ring.${state}`, { name }));
    if (!open) setTimeout(() => this.#forget(id), SHOWN_MS);
  }

  /** @param {string} id */
  #forget(id) {
    this.#rows.get(id)?.remove();
    this.#rows.delete(id);
    this.#list.hidden = this.#list.childElementCount === 0;
  }
}
