// Measures the longest time between two deliveries (a decoded frame, a played packet) of one source around a migration. Pure.

/** A source counts as running when its last delivery is at most this much older than the newest delivery of all sources. */
const RUNNING_MS = 1000;

/** The meter of one call. All times that it is given are in milliseconds of one clock. */
export class GapMeter {
  /**
   * Bounded by `forget`: one for each source of the room's people.
   * @type {Map<string, number>}
   */
  #latest = new Map();
  /**
   * The sources that ran when the migration began, by key.
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
   * Forgets sources that fell silent on purpose, or whose peer has left.
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
   * Begins a migration. The sources that run now become its witnesses.
   * @param {ReadonlySet<string>} [frozen] sources that should have been running
   */
  begin(frozen = new Set()) {
    // Witnesses that have not come back from an earlier journey stay, because they are still missed.
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

  /** Counts every later delivery as one of the new node. */
  mark() {
    this.#marked = true;
    for (const [key, witness] of this.#witnesses) witness.mark = this.#latest.get(key) ?? witness.mark;
  }

  /** The number of witnesses that have not been forgotten. */
  get witnesses() {
    return this.#witnesses.size;
  }

  /**
   * The keys of the witnesses that have not delivered from the new node.
   * @returns {string[]}
   */
  get missing() {
    const all = [...this.#witnesses];
    return all.filter(([key, { mark }]) => !this.#marked || (this.#latest.get(key) ?? mark) <= mark).map(([key]) => key);
  }

  /** The longest gap of the witnesses that came back; 0 when none did. */
  get longestMs() {
    const missing = new Set(this.missing);
    return Math.max(0, ...[...this.#witnesses].map(([key, { longestMs }]) => (missing.has(key) ? 0 : longestMs)));
  }
}
