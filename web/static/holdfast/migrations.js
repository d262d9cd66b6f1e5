// The moves of a call, each with its gap.

/** @typedef {import('./journey.js').Journey} Journey */

/** For `stats`. */
const REMEMBERED = 100;

export class Migrations {
  /** A move whose gap is not known: another journey may begin before it is. */
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
   * Its gap has been measured.
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
