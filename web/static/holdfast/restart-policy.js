// Decides how a connection is carried to the media node that has its room. Pure.

/** @typedef {import('./protocol.js').How} How */
/**
 * Nothing arrived in time, the browser rejected the answer or the server the offer, or the answer came from the address in use, which
 * needs an ICE restart.
 * @typedef {'timeout' | 'rejected' | 'taken'} Failure
 */
/** @typedef {{how: How, iceRestart: boolean, attempt: number, waitMs: number, limitMs: number, alarm: boolean}} Step */

/** The longest pause before an attempt. No attempt is the last one, because the network may come back at any time. */
const CEILING_MS = 10000;

/** How many new connections may be begun before the person is told. */
const QUIET_FAILURES = 2;

/**
 * Restarts of the live connection first, then new connections, slower and slower. The first restart may keep the addresses of the
 * browser (`keepsIce`), which is quicker by what gathering them takes; they may be what is wrong, so later ones restart ICE. After a rejected
 * answer the connection stays in have-local-offer, where another restart would be rejected too: a new one at once.
 */
export class RestartPolicy {
  #canMove;
  #keepsIce;
  #attempts;
  #attemptMs;
  #attempt = 0;
  #fresh = 0;

  /** @param {{canMove: boolean, keepsIce?: boolean, attempts?: number, attemptMs?: number}} options */
  constructor({ canMove, keepsIce = false, attempts = 3, attemptMs = 4000 }) {
    this.#canMove = canMove;
    this.#keepsIce = keepsIce;
    // The limits keep a server's order from making the client hang, or try without a pause.
    this.#attempts = Math.min(Math.max(Math.floor(attempts), 0), 10);
    this.#attemptMs = Math.min(Math.max(attemptMs, 500), 15000);
  }

  /** @returns {Step} */
  first() {
    return this.#canMove && this.#attempts > 0 ? this.#restart() : this.#newConnection();
  }

  /**
   * @param {Failure} failure
   * @returns {Step}
   */
  next(failure) {
    if (this.#fresh === 0 && failure !== 'rejected' && this.#attempt < this.#attempts) return this.#restart();
    return this.#newConnection();
  }

  /** @returns {Step} */
  #restart() {
    this.#attempt++;
    const iceRestart = !this.#keepsIce || this.#attempt > 1;
    return { how: 'restart', iceRestart, attempt: this.#attempt, waitMs: 0, limitMs: this.#attemptMs, alarm: false };
  }

  /** @returns {Step} */
  #newConnection() {
    const waitMs = this.#fresh === 0 ? 0 : Math.min(CEILING_MS, 500 * 2 ** Math.min(this.#fresh - 1, 10));
    this.#fresh++;
    this.#attempt++;
    return {
      how: 'new-connection',
      iceRestart: false,
      attempt: this.#attempt,
      waitMs,
      limitMs: this.#attemptMs,
      alarm: this.#fresh > QUIET_FAILURES,
    };
  }
}
