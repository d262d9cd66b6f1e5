// Watches what the slots deliver: now and then while a call runs, closely from the
// beginning of a journey until it is known how long nothing was seen or heard.

import { GapMeter } from './gap.js';
import { slotKey } from './slots.js';
import { wait } from './wait.js';

/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./slots.js').SlotTable} SlotTable */

/** How often deliveries are noted during a journey. */
const CLOSE_LOOK_MS = 15;
/** How long after its end a journey's gap may still grow before it is told. */
const REPORT_LIMIT_MS = 5000;

export class GapWatch {
  #slots;
  #meter = new GapMeter();
  #looking = new AbortController();

  /** @param {SlotTable} slots */
  constructor(slots) {
    this.#slots = slots;
  }

  /** Whether somebody's media ran when the journey began, so that it should come back. */
  get expects() {
    return this.#meter.witnesses > 0;
  }

  /** Notes when each source in a slot delivered last. */
  note() {
    for (const [key, { lane }] of this.#slots.occupied()) {
      for (const { timestamp } of lane.receiver.getSynchronizationSources()) this.#meter.observe(key, timestamp);
    }
  }

  /**
   * The table has changed. That a paused slot delivers nothing is no gap.
   * @param {Slot[]} slots
   */
  heard(slots) {
    this.#meter.keep(this.#slots.occupied());
    for (const { peer, source, paused } of slots) {
      if (paused && source !== '') this.#meter.forget(slotKey(peer, source));
    }
  }

  /**
   * A source fell silent on purpose.
   * @param {string} peer
   * @param {import('./protocol.js').Source} source
   */
  forget(peer, source) {
    this.#meter.forget(slotKey(peer, source));
  }

  /** A journey begins: looks closely until its gap is known, or `stop`. */
  async begin() {
    this.stop();
    this.#looking = new AbortController();
    const { signal } = this.#looking;
    try {
      // A look waits for what the browser is doing with its connections, and the offer would wait for the look.
      await wait(0, signal);
      this.note();
      this.#meter.begin();
      for (;;) {
        await wait(CLOSE_LOOK_MS, signal);
        this.note();
      }
    } catch {
      // Measured, or stopped.
    }
  }

  /** The node is reached: what is delivered from now on comes from there. */
  mark() {
    this.note();
    this.#meter.mark();
  }

  /**
   * The journey is over. Resolves once every source that ran before runs again.
   * @returns {Promise<number | null>} the longest gap; null when stopped, and then the next journey's reaches back to the same deliveries
   */
  async longestMs() {
    const looking = this.#looking;
    const until = performance.now() + REPORT_LIMIT_MS;
    try {
      while (!this.#meter.complete && performance.now() < until) await wait(CLOSE_LOOK_MS, looking.signal);
    } catch {
      return null;
    }
    looking.abort();
    return Math.round(this.#meter.longestMs);
  }

  stop() {
    this.#looking.abort();
  }
}
