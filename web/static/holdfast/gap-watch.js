// Watches when the slots deliver media. It looks closely from the beginning of a journey until the journey's gap is known.

import { GapMeter } from './gap.js';
import { slotKey, streamOf } from './slots.js';
import { wait } from './wait.js';

/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./protocol.js').Stream} Stream */
/** @typedef {import('./slots.js').SlotTable} SlotTable */

/** The time between two looks during a journey. */
const CLOSE_LOOK_MS = 15;
/** How long deliveries are watched before the swap of a live move, to know which streams run. */
const BEFORE_MS = 100;
const REPORT_LIMIT_MS = 5000;

export class GapWatch {
  #slots;
  #isExpected;
  #limitMs;
  #meter = new GapMeter();
  #looking = new AbortController();

  /**
   * @param {SlotTable} slots
   * @param {(stream: Stream) => boolean} isExpected whether a stream should be shown now
   * @param {number} [limitMs] how long after its end a journey's gap may still grow before it is told
   */
  constructor(slots, isExpected, limitMs = REPORT_LIMIT_MS) {
    this.#slots = slots;
    this.#isExpected = isExpected;
    this.#limitMs = limitMs;
  }

  /** Whether media ran when the journey began, so that it should come back. */
  get expects() {
    return this.#meter.witnesses > 0;
  }

  /**
   * The streams, by slotKey, that ran when the last journey began, should be shown, and have not been shown since. A stream whose place another
   * stream has taken is not missing. A new node's first slot tables may lack a stream whose place is kept.
   * @returns {Map<string, Stream>}
   */
  get missing() {
    const missing = new Map();
    for (const key of this.#meter.missing) {
      const stream = streamOf(key);
      if (this.#isExpected(stream) && this.#slots.hasPlace(stream)) missing.set(key, stream);
    }
    return missing;
  }

  /** Notes when each source in a slot delivered last. */
  note() {
    for (const [key, { lane }] of this.#slots.occupied()) {
      for (const { timestamp } of lane.receiver.getSynchronizationSources()) this.#meter.observe(key, timestamp);
    }
  }

  /**
   * Takes note of the slots, and stops measuring the gaps of paused ones, which deliver nothing on purpose.
   * @param {Slot[]} slots
   */
  heard(slots) {
    const paused = new Set(slots.filter(({ paused }) => paused).map(({ peer, source }) => slotKey(peer, source)));
    this.#meter.forget((key) => paused.has(key));
  }

  /**
   * Stops measuring the gap of a source that its owner muted, or of all sources of a peer who has left when `source` is missing.
   * @param {string} peer
   * @param {import('./protocol.js').Source} [source]
   */
  forget(peer, source) {
    this.#meter.forget((key) => (source ? key === slotKey(peer, source) : key.startsWith(slotKey(peer, ''))));
  }

  /**
   * Looks closely until the journey's gap is known, or `stop`.
   * @param {ReadonlySet<string>} frozen the streams, by slotKey, that should have been running
   */
  async begin(frozen) {
    this.stop();
    this.#looking = new AbortController();
    const { signal } = this.#looking;
    try {
      // The first look waits for the next task, so that the journey's offer does not wait for the look.
      await wait(0, signal);
      this.note();
      this.#meter.begin(frozen);
      for (;;) {
        await wait(CLOSE_LOOK_MS, signal);
        this.note();
      }
    } catch {
      // Measured, or stopped.
    }
  }

  /**
   * Calls `begin`, and resolves when the running streams are known, or after `stop`.
   * @param {ReadonlySet<string>} frozen
   */
  async begun(frozen) {
    this.begin(frozen);
    await wait(BEFORE_MS, this.#looking.signal).catch(() => {});
  }

  /** Counts every later delivery as one of the new node. */
  mark() {
    this.note();
    this.#meter.mark();
  }

  /**
   * Resolves once every source that ran before runs again, or the limit is over.
   * @returns {Promise<{gapMs: number, lost: Stream[]} | null>} the longest gap, and what has not come back; null when stopped, and then the next journey's reaches back to the same deliveries
   */
  async measured() {
    const looking = this.#looking;
    const until = performance.now() + this.#limitMs;
    try {
      while (this.missing.size > 0 && performance.now() < until) await wait(CLOSE_LOOK_MS, looking.signal);
    } catch {
      return null;
    }
    looking.abort();
    return { gapMs: Math.round(this.#meter.longestMs), lost: [...this.missing.values()] };
  }

  stop() {
    this.#looking.abort();
  }
}
