// How long nothing was seen or heard around a migration: the longest time between
// two deliveries (a decoded frame, a played packet) of the same source. Pure.

/** A source counts as running when it delivered this shortly before the latest of all. */
const RUNNING_MS = 1000;

/** Deliveries are told as (source, time); times are all of one clock. */
export class GapMeter {
  /**
   * The latest delivery of each source. Bounded by `forget`: one for each source of somebody who is in the room.
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
   * Forgets sources for which nobody waits: they fell silent on purpose, or their person left.
   * @param {(key: string) => boolean} which
   */
  forget(which) {
    for (const keys of [this.#latest, this.#witnesses]) {
      for (const key of keys.keys()) {
        if (which(key)) keys.delete(key);
      }
    }
  }

  /**
   * A migration begins: the sources that are running now are its witnesses.
   * @param {ReadonlySet<string>} [frozen] sources that should have been running
   */
  begin(frozen = new Set()) {
    // Sources that have not come back from the journey before are still missed.
    for (const [key, { mark }] of this.#witnesses) {
      if ((this.#latest.get(key) ?? mark) > mark) this.#witnesses.delete(key);
    }
    this.#marked = false;
    const newest = Math.max(...this.#latest.values());
    for (const [key, atMs] of this.#latest) {
      const runs = newest - atMs <= RUNNING_MS || frozen.has(key);
      if (runs && !this.#witnesses.has(key)) this.#witnesses.set(key, { longestMs: 0, mark: atMs });
    }
  }

  /** The new node is reached: what is delivered from now on comes from there. */
  mark() {
    this.#marked = true;
    for (const [key, witness] of this.#witnesses) witness.mark = this.#latest.get(key) ?? witness.mark;
  }

  /** How many sources were running when the migration began and have not been forgotten. */
  get witnesses() {
    return this.#witnesses.size;
  }

  /**
   * The witnesses that have not delivered from the new node.
   * @returns {string[]}
   */
  get missing() {
    const all = [...this.#witnesses];
    return all.filter(([key, { mark }]) => !this.#marked || (this.#latest.get(key) ?? mark) <= mark).map(([key]) => key);
  }

  /** The longest gap of the witnesses that have come back; 0 when there are none. */
  get longestMs() {
    const missing = new Set(this.missing);
    return Math.max(0, ...[...this.#witnesses].map(([key, { longestMs }]) => (missing.has(key) ? 0 : longestMs)));
  }
}
