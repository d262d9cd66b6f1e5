// Corrupts answers on purpose, for tests of the fallback to a new connection.

/** @typedef {{rejectAnswers?: number}} Faults corrupts the next n answers to restarts */

export class AnswerFaults {
  #left;

  /** @param {Faults} faults */
  constructor({ rejectAnswers = 0 }) {
    this.#left = rejectAnswers;
  }

  /**
   * @param {string} sdp
   * @param {import('./protocol.js').How} how
   */
  read(sdp, how) {
    if (how !== 'restart' || this.#left === 0) return sdp;
    this.#left--;
    return sdp.slice(0, sdp.lastIndexOf('\nm=') + 1); // One m-line is missing: no browser takes that.
  }
}
