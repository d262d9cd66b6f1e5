// What is done when the node cannot use what we send. Pure.

/** @typedef {import('./protocol.js').How} How */

/** Asked again this soon, the connection itself is in doubt. */
const AGAIN_MS = 15000;
const CEILING_MS = 120000;

/** An offer of the same connection first, then new connections, slower and slower. */
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
