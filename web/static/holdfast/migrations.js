// The moves of a call, each with its gap.

/** @typedef {import('./journey.js').Journey} Journey */

/** How many finished moves are kept for `stats`. */
const REMEMBERED = 100;

export class Migrations {
  /** Whether a move began whose gap is not known yet. It stays true when another journey begins before the gap is known. */
  #owed = false;
  /** @type {Journey[]} */
  #done = [];

  get list() {
    return this.#done.map((journey) => ({ ...journey }));
  }

  /** @param {import('./journey.js').Reason} reason */
  begin(reason) {
    this.#owed ||= reason === 'moved';
  }

  /**
   * Ends the journey whose gap has been measured, and records it when it was a move.
   * @param {Journey} journey
   * @returns {'migrated' | 'mended'} to another node, or on the same one
   */
  end(journey) {
    if (!this.#owed) return 'mended';
    this.#owed = false;
    this.#done.push(journey);
    if (this.#done.length > REMEMBERED) this.#done.shift();
    return 'migrated';
  }
}
