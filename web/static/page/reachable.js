// On the start page: one is reached there by the address's token, in dev by the name in the field.

import { Presence } from '../holdfast/presence.js';
import { site } from './site.js';
import { fetchToken, inDevelopment } from './tokens.js';

/** A room that a token in dev has to name; nobody joins it. */
const START = 'start';

export class Reachable {
  #ringing;
  #link;
  #onMessage;
  /** @type {Presence | null} */
  #presence = null;
  #name = '';
  /** Grows with each `open` and `close`: what it waits for is out of date then. */
  #era = 0;

  /**
   * @param {import('./ringing.js').Ringing} ringing
   * @param {{token: string, message: boolean}} link `message`: whether its token reaches anybody; without that one is not reached either
   * @param {(message: {from: string, name: string, kind: string, body: unknown}) => void} onMessage
   */
  constructor(ringing, link, onMessage) {
    this.#ringing = ringing;
    this.#link = link;
    this.#onMessage = onMessage;
  }

  /** @param {string} name */
  async open(name) {
    if (this.#presence && (this.#link.token !== '' || name === this.#name)) return;
    this.close();
    const era = this.#era;
    if (this.#link.token !== '' ? !this.#link.message : name === '' || !await inDevelopment()) return;
    if (era !== this.#era) return;
    const presence = new Presence();
    [this.#presence, this.#name] = [presence, name];
    this.#ringing.follow(presence.messages);
    presence.messages.addEventListener('message', (event) => this.#onMessage(/** @type {CustomEvent} */ (event).detail));
    // A failure is not shown: the page works without presence, and joining tells what is wrong.
    await presence.connect({ url: site, token: () => fetchToken(this.#link.token, START, name, false) }).catch(() => {});
  }

  close() {
    this.#era++;
    this.#presence?.close();
    this.#presence = null;
  }
}
