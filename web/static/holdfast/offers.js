// Sends offers and waits for their answers. An offer that is sent twice gets the same answer, so a lost socket costs only time.

import { Aborted } from './wait.js';

/** @typedef {import('./protocol.js').Offer} Offer */
/** @typedef {import('./protocol.js').Answer} Answer */

export class OfferRejected extends Error {}

export class Offers {
  #send;
  #count = 0;
  /**
   * The offer that waits for its answer; a newer offer replaces it.
   * @type {{offer: Offer, resolve: (answer: Answer) => void, reject: (error: Error) => void} | null}
   */
  #due = null;

  /** @param {(offer: Offer) => boolean} send false when there is no socket now */
  constructor(send) {
    this.#send = send;
  }

  /** How many offers were made; an offer that was sent again counts once. */
  get count() {
    return this.#count;
  }

  /**
   * Sends an offer, or keeps it for the next socket, and waits for its answer.
   * @param {Omit<Offer, 'type' | 'id'>} body
   * @param {AbortSignal} signal
   * @returns {Promise<Answer>} rejects with OfferRejected or Aborted
   */
  ask(body, signal) {
    this.#due?.reject(new Aborted());
    this.#count++;
    /** @type {Offer} */
    const offer = { type: 'offer', id: `o${this.#count}`, ...body };
    return new Promise((resolve, reject) => {
      const due = { offer, resolve, reject };
      this.#due = due;
      signal.addEventListener('abort', () => {
        if (this.#due === due) this.#due = null;
        reject(new Aborted());
      }, { once: true });
      this.#send(offer);
    });
  }

  /** Sends the waiting offer again, after the session has been opened again. */
  resend() {
    if (this.#due) this.#send(this.#due.offer);
  }

  /** @param {Answer} answer */
  answered(answer) {
    if (this.#due?.offer.id !== answer.id) return;
    this.#due.resolve(answer);
    this.#due = null;
  }

  /** @param {import('./protocol.js').OfferRejected} message */
  rejected(message) {
    if (this.#due?.offer.id !== message.id) return;
    this.#due.reject(new OfferRejected(message.message));
    this.#due = null;
  }
}
