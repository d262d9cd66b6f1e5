// What is done when the node asks for an offer, because it cannot use what we send. Pure: a time in, what to do out.

/** @typedef {import('./protocol.js').How} How */

/** Asked again so soon after the last offer, the connection itself is in doubt. */
const AGAIN_MS = 15000;
/** The longest pause between two new connections. */
const CEILING_MS = 120000;

/** An offer of the same connection first, then a new connection, then new ones slower and slower, while the node goes on asking. */
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
