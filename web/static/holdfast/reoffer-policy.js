// Decides how to offer again when the media node cannot use what this client sends. Pure.

/** @typedef {import('./protocol.js').How} How */

/** When the node asks again within this time, the connection itself is in doubt and a new one is made. */
const AGAIN_MS = 15000;
const CEILING_MS = 120000;

/** Gives an offer of the same connection first, and then new connections with ever longer pauses. */
export class ReofferPolicy {
  #offeredAt = -Infinity;
  #pauseMs = 0;

  /**
   * @param {number} nowMs
   * @returns {How | ''} '' when it is too early
   */
  next(nowMs) {
    const sinceMs = nowMs - this.#offeredAt;
    if (sinceMs < this.#pauseMs) return '';
    const again = sinceMs < AGAIN_MS + this.#pauseMs;
    this.#offeredAt = nowMs;
    if (again) this.#pauseMs = Math.min(Math.max(this.#pauseMs * 2, AGAIN_MS), CEILING_MS);
    else this.#pauseMs = 0;
    return again ? 'new-connection' : 'restart';
  }
}
