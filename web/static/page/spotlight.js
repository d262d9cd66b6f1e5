// Who is large in the speaker layout: whoever speaks, and not every cough. Pure.

/** At least so long one stays large. */
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
