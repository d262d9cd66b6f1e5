// How long nothing was seen or heard around a migration: the longest time between
// two deliveries (a decoded frame, a played packet) of the same source. Pure.

/** A source counts as running when it delivered this shortly before the latest of all. */
const RUNNING_MS = 1000;

/** Deliveries are told as (source, time); times are all of one clock. */
export class GapMeter {
  /**
   * The latest delivery of each source. Bounded by `keep`.
   * @type {Map<string, number>}
   */
  #latest = new Map();
  /**
   * The sources that ran when the migration began.
   * @type {Map<string, {longestMs: number, mark: number}>}
   */
  #witnesses = new Map();
  #marked = false;

  /**
   * @param {string} key
   * @param {number} atMs when the source's most recent delivery was
   */
  observe(key, atMs) {
    const before = this.#latest.get(key);
    if (before !== undefined && atMs <= before) return;
    this.#latest.set(key, atMs);
    const witness = this.#witnesses.get(key);
    if (witness && before !== undefined) witness.longestMs = Math.max(witness.longestMs, atMs - before);
  }

  /**
   * Forgets every source that is not (or no longer) in a slot.
   * @param {{has(key: string): boolean}} keys
   */
  keep(keys) {
    for (const key of this.#latest.keys()) {
      if (!keys.has(key)) this.#latest.delete(key);
    }
    for (const key of this.#witnesses.keys()) {
      if (!keys.has(key)) this.#witnesses.delete(key);
    }
  }

  /**
   * A source fell silent on purpose: nobody waits for it.
   * @param {string} key
   */
  forget(key) {
    this.#latest.delete(key);
    this.#witnesses.delete(key);
  }

  /** A migration begins: the sources that are running now are its witnesses. */
  begin() {
    // Sources that have not come back from the journey before are still missed.
    for (const [key, { mark }] of this.#witnesses) {
      if ((this.#latest.get(key) ?? mark) > mark) this.#witnesses.delete(key);
    }
    this.#marked = false;
    const newest = Math.max(...this.#latest.values());
    for (const [key, atMs] of this.#latest) {
      if (newest - atMs <= RUNNING_MS && !this.#witnesses.has(key)) this.#witnesses.set(key, { longestMs: 0, mark: atMs });
    }
  }

  /** The new node is reached: what is delivered from now on comes from there. */
  mark() {
    this.#marked = true;
    for (const [key, witness] of this.#witnesses) witness.mark = this.#latest.get(key) ?? witness.mark;
  }

  /** How many sources were running when the migration began and are still in a slot. */
  get witnesses() {
    return this.#witnesses.size;
  }

  /** Whether every witness has delivered from the new node. */
  get complete() {
    if (!this.#marked) return false;
    return [...this.#witnesses].every(([key, { mark }]) => (this.#latest.get(key) ?? mark) > mark);
  }

  /**
   * The longest gap so far; 0 when there was nothing to see or hear. A source that
   * has not come back counts with the time for which it has been missed while others were delivering.
   */
  get longestMs() {
    const newest = Math.max(...this.#latest.values());
    return Math.max(0, ...[...this.#witnesses].map(([key, { longestMs, mark }]) => {
      const latest = this.#latest.get(key) ?? mark;
      return latest > mark ? longestMs : Math.max(longestMs, newest - latest);
    }));
  }
}
