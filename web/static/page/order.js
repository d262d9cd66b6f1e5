// The order of the tiles. Newcomers stand last. A person who speaks out of sight changes places with the person in sight who has been silent
// longest. Pure.

export class Order {
  /** @type {string[]} */
  #keys = [];
  /**
   * For each key, the count of `heard` calls at which it spoke last.
   * @type {Map<string, number>}
   */
  #spoke = new Map();
  #heard = 0;

  get keys() {
    return [...this.#keys];
  }

  /**
   * Removes the keys that have gone and appends the new ones. The other keys keep their order.
   * @param {string[]} here
   */
  sync(here) {
    const present = new Set(here);
    const known = new Set(this.#keys);
    this.#keys = [...this.#keys.filter((key) => present.has(key)), ...here.filter((key) => !known.has(key))];
    for (const key of this.#spoke.keys()) if (!present.has(key)) this.#spoke.delete(key);
  }

  /**
   * Returns whether the order changed.
   * @param {string[]} speaking loudest first
   * @param {number} inSight how many of the first are in sight
   * @param {string} [stays] who is never moved out of sight: oneself
   */
  heard(speaking, inSight, stays = '') {
    this.#heard++;
    for (const key of speaking) this.#spoke.set(key, this.#heard);
    const from = speaking.map((key) => this.#keys.indexOf(key)).find((index) => index >= inSight);
    if (from === undefined) return false;
    let quietest = -1;
    for (let i = 0; i < Math.min(inSight, this.#keys.length); i++) {
      if (this.#keys[i] === stays) continue;
      if (quietest < 0 || this.#when(i) < this.#when(quietest)) quietest = i;
    }
    if (quietest < 0 || this.#when(quietest) === this.#heard) return false; // All in sight speak.
    [this.#keys[quietest], this.#keys[from]] = [this.#keys[from], this.#keys[quietest]];
    return true;
  }

  /** @param {number} index */
  #when(index) {
    return this.#spoke.get(this.#keys[index]) ?? 0;
  }
}
