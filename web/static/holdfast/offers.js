// Sends offers and waits for their answers. An offer that is sent twice gets the same answer, so a lost socket costs only time.

import { Aborted } from './wait.js';

/** @typedef {import('./protocol.js').Offer} Offer */
/** @typedef {import('./protocol.js').Answer} Answer */

export class OfferRejected extends Error {}

export class Offers {
  #send;
  #count = 0;
  #made = 0;
  /**
   * The offer that waits for its answer; a newer offer replaces it.
   * @type {{offer: Offer, resolve: (answer: Answer) => void, reject: (error: Error) => void} | null}
   */
  #due = null;
  /**
   * The offer that was made before the session is open, until it is asked for.
   * @type {Offer | null}
   */
  #ahead = null;
  #sentAhead = false;
  #data;

  /**
   * @param {(offer: Offer) => boolean} send false when there is no socket now
   * @param {boolean} [data] whether the connections have data channels
   */
  constructor(send, data = false) {
    this.#send = send;
    this.#data = data;
  }

  /** How many offers were asked for; an offer that was sent again counts once. */
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
    const ahead = this.#ahead?.sdp === body.sdp ? this.#ahead : null;
    const sent = ahead !== null && this.#sentAhead;
    const offer = ahead ?? this.#make(body);
    this.#ahead = null;
    this.#count++;
    return new Promise((resolve, reject) => {
      const due = { offer, resolve, reject };
      this.#due = due;
      signal.addEventListener('abort', () => {
        if (this.#due === due) this.#due = null;
        reject(new Aborted());
      }, { once: true });
      if (!sent) this.#send(offer);
    });
  }

  /** @param {Omit<Offer, 'type' | 'id'>} body */
  #make(body) {
    this.#made++;
    return /** @type {Offer} */ ({ type: 'offer', id: `o${this.#made}`, rests: true, ...body, ...(this.#data ? { data: true } : {}) });
  }

  /**
   * Takes the first offer before the session is open. It is sent by `sendAhead`, and asked for by `ask` with the same SDP.
   * @param {Omit<Offer, 'type' | 'id'>} body
   */
  prepare(body) {
    this.#ahead = this.#make(body);
  }

  /** @param {(offer: Offer) => boolean} send false when it cannot be sent ahead now */
  sendAhead(send) {
    if (!this.#ahead) return;
    this.#sentAhead = true; // Before its refusal may come.
    if (!send(this.#ahead)) this.#sentAhead = false;
  }

  /** The server did not take the offer that was sent ahead: `ask` sends it again. */
  aheadRefused() {
    this.#sentAhead = false;
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
