// A move while both nodes live: a second connection is made beside the first, until everything that flows there has
// arrived here too. It shows nothing and plays nothing before the swap.

import { Arrivals } from './arrivals.js';
import { Move } from './move.js';
import { Aborted, wait } from './wait.js';

/** @typedef {import('./transport.js').Transport} Transport */
/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./protocol.js').Answer} Answer */

/** The time between two looks. A live move is in no hurry, and each look at a receiver waits for another thread in Chromium. */
const LOOK_MS = 100;
/** How long the move waits for pictures that stand still, are not carried by the new path yet, or are smaller there, because senders begin small. */
const PATIENCE_MS = 3000;
/** How long the new connection runs before it takes over. A jitter buffer needs this time to know its network and conceals sound before. */
const SETTLE_MS = 500;
/** The limits for the times that a server may ask for. */
const [SHORTEST_MS, LONGEST_MS] = [500, 15000];

/** The second connection could not take over. */
export class LiveMoveFailed extends Error {}

/** The restart policy of a live move: one attempt, after which a failure ends the move with LiveMoveFailed. */
class OneAttempt {
  /** @param {number} limitMs */
  constructor(limitMs) {
    this.limitMs = limitMs;
  }

  /** @returns {import('./restart-policy.js').Step} */
  first() {
    return { how: 'live', iceRestart: false, attempt: 1, waitMs: 0, limitMs: this.limitMs, alarm: false };
  }

  /**
   * @param {import('./restart-policy.js').Failure} failure
   * @returns {never}
   */
  next(failure) {
    throw new LiveMoveFailed(failure);
  }
}

/** @param {number} ms */
const bounded = (ms) => Math.min(Math.max(ms, SHORTEST_MS), LONGEST_MS);

/**
 * @typedef {object} LiveSurroundings
 * @property {Transport} first the connection that stands
 * @property {import('./slots.js').SlotTable} shown what it shows
 * @property {(stream: import('./protocol.js').Stream) => boolean} isExpected whether a stream should be shown now
 * @property {() => Transport} make a connection that sends what the first one sends
 * @property {import('./move.js').Surroundings} move
 */

export class LiveMove {
  #around;
  #arrivals;
  #order;
  #move;
  #abort = new AbortController();
  /** @type {Transport | null} */
  #next = null;
  /**
   * The slots as the new node last sent them.
   * @type {Slot[]}
   */
  #slots = [];

  /**
   * @param {{epoch: number, attemptMs?: number, overlapMs?: number}} order
   * @param {LiveSurroundings} around
   */
  constructor({ epoch, attemptMs = 4000, overlapMs = 10000 }, around) {
    this.#order = { epoch, overlapMs: bounded(overlapMs) };
    this.#around = around;
    this.#arrivals = new Arrivals(around.isExpected);
    this.#move = new Move(new OneAttempt(bounded(attemptMs)), null, {
      ...around.move,
      make: () => this.#make(),
      lookMs: LOOK_MS,
      mediaExpected: () => false, // The others may be on their way.
      described: () => {},
      secured: () => {},
      unreached: () => {},
      discarded: () => {},
    });
  }

  /** The epoch of the move, and for how many milliseconds the first connection is needed after the swap. */
  get order() {
    return this.#order;
  }

  /** @param {Slot[]} slots of the new node */
  heard(slots) {
    this.#slots = slots;
  }

  /**
   * @param {import('./protocol.js').Source} source
   * @param {MediaStreamTrack | null} track
   */
  async setTrack(source, track) {
    await this.#next?.setTrack(source, track);
  }

  /** Ends the move and closes the second connection; `run` rejects with Aborted. */
  abandon() {
    this.#abort.abort();
    this.#move.supersede();
    this.#next?.close();
  }

  /**
   * Resolves when the second connection can take over; rejects with LiveMoveFailed or Aborted, and then it is closed.
   * @returns {Promise<{transport: Transport, answer: Answer, slots: Slot[]}>}
   */
  async run() {
    const looking = new AbortController();
    const look = this.#look(looking.signal);
    try {
      const { transport, answer } = await this.#move.run();
      await this.#everything(transport);
      return { transport, answer, slots: this.#slots };
    } catch (error) {
      this.#next?.close();
      if (this.#abort.signal.aborted) throw new Aborted();
      throw error;
    } finally {
      looking.abort();
      await look;
    }
  }

  #make() {
    this.#next = this.#around.make();
    this.#next.audible = false;
    return this.#next;
  }

  /**
   * Records deliveries on both connections until the signal is aborted. It runs from the beginning of the move, so that the streams that flow
   * on the first connection are known when the second one stands.
   * @param {AbortSignal} signal
   */
  async #look(signal) {
    try {
      for (;;) {
        this.#arrivals.look(this.#around.shown.occupied(), this.#slots, this.#next?.lanes ?? [], performance.now());
        await wait(LOOK_MS, signal);
      }
    } catch {
      // It is over.
    }
  }

  /** @param {Transport} transport */
  async #everything(transport) {
    const began = performance.now();
    const { inbound } = await this.#around.first.stats();
    let ready = Infinity;
    for (;;) {
      await wait(LOOK_MS, this.#abort.signal);
      if (transport.broken || transport.iceState === 'failed') throw new LiveMoveFailed('the new connection broke');
      const now = performance.now();
      const { flows, still } = this.#arrivals.missing(now, inbound);
      const late = now - began > this.#order.overlapMs;
      if (flows.length > 0 && !late) {
        ready = Infinity;
        continue;
      }
      ready = Math.min(ready, now);
      if (flows.length > 0 && !this.#arrivals.any) throw new LiveMoveFailed('nothing arrived');
      const patient = now - began < PATIENCE_MS;
      const settled = now - ready >= (this.#arrivals.any ? SETTLE_MS : 0);
      if (late || (settled && !(patient && still.length > 0) && await this.#decoded(transport, patient))) return;
    }
  }

  /**
   * @param {Transport} transport
   * @param {boolean} patient
   */
  async #decoded(transport, patient) {
    const [old, next] = await Promise.all([this.#around.first.stats(), transport.stats()]);
    const { all, large } = this.#arrivals.decoded(old.inbound, next.inbound);
    return all && (large || !patient);
  }
}
