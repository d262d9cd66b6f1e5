// Decides who is large in the speaker layout: the person who speaks, but not at every cough. Pure.

/** How long a person stays large at least. */
const STAYS_MS = 1500;

export class Spotlight {
  #on = '';
  #since = -Infinity;

  /**
   * Returns whether somebody else is large now.
   * @param {string[]} speaking without oneself, loudest first
   * @param {number} now
   */
  heard(speaking, now) {
    const [loudest] = speaking;
    if (!loudest || speaking.includes(this.#on) || now - this.#since < STAYS_MS) return false;
    [this.#on, this.#since] = [loudest, now];
    return true;
  }

  /**
   * @param {string[]} others who are here
   * @returns {string} empty for nobody
   */
  of(others) {
    return others.includes(this.#on) ? this.#on : others[0] ?? '';
  }
}
