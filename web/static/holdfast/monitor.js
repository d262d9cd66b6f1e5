// Reads the connection's statistics for every part that judges by them: once a second, and four times a second while a stream that should be
// shown is not.

import { FreezePolicy } from './freeze-policy.js';
import { FreezeWatch } from './freeze.js';
import { slotKey } from './slots.js';
import { StallWatch } from './stall.js';
import { wait } from './wait.js';

/** @typedef {import('./transport.js').Transport} Transport */
/** @typedef {import('./freeze-policy.js').Remedy} Remedy */

const STEADY_MS = 1000;
const CLOSE_MS = 250;
/** How long the statistics are read four times a second: by then every remedy has been tried. */
const CLOSE_LIMIT_MS = 6000;
/** The waits between the first looks at a new connection's SSRCs, which come early because the connection may be lost within a second. */
const LEARN_MS = [100, 200, 300];

/**
 * @typedef {object} Watched
 * @property {import('./slots.js').SlotTable} slots
 * @property {import('./ssrc-table.js').SsrcTable} ssrcs
 * @property {import('./gap-watch.js').GapWatch} gap
 * @property {() => Transport | null} transport the present one
 * @property {() => boolean} busy whether a journey is under way
 * @property {() => boolean} open whether the node can be asked
 * @property {(stream: import('./protocol.js').Stream) => boolean} isExpected whether a stream should be shown now
 * @property {() => number} people how many are in the room
 * @property {boolean} prepares whether the next restart's offer is made in advance
 * @property {(silentMs: number) => void} stalled nothing arrives any more
 * @property {(transport: Transport, stats: import('./stats.js').Stats) => void} looked once a second
 * @property {(remedy: Pick<Remedy, 'refresh' | 'how'>) => void} remedy something should be shown and is not
 * @property {(undecodable: import('./protocol.js').Lack[]) => void} undecodable other streams than before arrive, cannot be decoded, and are given up
 */

export class Monitor {
  #watched;
  #stall = new StallWatch();
  #freeze = new FreezeWatch();
  #policy = new FreezePolicy();
  /** The slotKeys of the streams that were frozen at the last look. */
  #frozen = new Set();
  /**
   * The streams that were given up, by slotKey. Each stays until it is shown, or has no slot any more.
   * @type {Map<string, import('./protocol.js').Lack>}
   */
  #undecodable = new Map();
  #close = false;
  #runs = false;

  /** @param {Watched} watched */
  constructor(watched) {
    this.#watched = watched;
  }

  /**
   * The slotKeys of the streams that should have been shown at the last look and were not.
   * @returns {ReadonlySet<string>}
   */
  get frozen() {
    return this.#frozen;
  }

  /**
   * Looks until the signal is aborted; does nothing if it runs already.
   * @param {AbortSignal} signal
   */
  async run(signal) {
    if (this.#runs) return;
    this.#runs = true;
    let steadyAt = performance.now();
    let closeUntil = 0;
    try {
      for (;;) {
        await wait(CLOSE_MS, signal);
        // Four ticks may add up to a little less than a second.
        const steady = performance.now() - steadyAt > STEADY_MS - CLOSE_MS / 2;
        if (steady) steadyAt = performance.now();
        if (this.#watched.busy()) closeUntil = performance.now() + CLOSE_LIMIT_MS;
        const missed = performance.now() < closeUntil && this.#watched.gap.missing.size > 0;
        // A connection that was closed meanwhile may refuse.
        if (steady || this.#close || missed) await this.#look(steady).catch(() => {});
      }
    } catch {
      // Closed.
    }
  }

  /**
   * @param {Transport} transport
   * @param {AbortSignal} signal
   */
  async learnSoon(transport, signal) {
    try {
      for (const ms of LEARN_MS) {
        await wait(ms, signal);
        const stats = await transport.stats();
        if (transport === this.#watched.transport()) this.#learn(transport, stats);
      }
    } catch {
      // Closed.
    }
  }

  reset() {
    this.#freeze.reset();
    this.#policy.reset();
    this.#frozen.clear();
  }

  /** @param {boolean} steady whether this is the look that comes every second */
  async #look(steady) {
    const { gap, prepares, stalled } = this.#watched;
    gap.note();
    const transport = this.#watched.transport();
    const present = () => transport !== null && transport === this.#watched.transport() && !this.#watched.busy();
    if (!transport || !present()) {
      this.#stall.reset();
      return;
    }
    const stats = await transport.stats();
    if (!present()) return;
    const nowMs = performance.now();
    if (steady) {
      this.#learn(transport, stats);
      this.#watched.looked(transport, stats);
      const silentMs = this.#stall.look(stats, nowMs);
      if (silentMs > 0) stalled(silentMs);
    }
    this.#judge(stats, nowMs);
    if (steady && prepares && present()) await transport.prepare();
  }

  /**
   * @param {Transport} transport
   * @param {import('./stats.js').Stats} stats
   */
  #learn(transport, stats) {
    this.#watched.ssrcs.learn(transport.localSdp, stats.outbound);
  }

  /**
   * @param {import('./stats.js').Stats} stats
   * @param {number} nowMs
   */
  #judge(stats, nowMs) {
    const { slots, gap, isExpected, open, people, remedy } = this.#watched;
    const expected = slots.slots.filter((slot) => slot.peer !== '' && !slot.paused && isExpected(/** @type {import('./protocol.js').Stream} */ (slot)));
    const call = { nowMs, people: people() };
    const { frozen, shown, ...connection } = this.#freeze.look({ slots: expected, stats, missing: new Set(gap.missing.keys()), ...call });
    this.#frozen = new Set(frozen.map(({ key }) => key));
    this.#close = frozen.some(({ frozenMs }) => frozenMs < CLOSE_LIMIT_MS);
    if (open()) {
      const { refresh, how, givenUp } = this.#policy.next(frozen, { ...call, ...connection });
      this.#giveUp(givenUp, shown, stats);
      if (refresh.length > 0 || how !== '') remedy({ refresh, how });
    } else this.#giveUp([], shown, stats);
  }

  /**
   * @param {string[]} more slotKeys
   * @param {ReadonlySet<string>} shown
   * @param {import('./stats.js').Stats} stats
   */
  #giveUp(more, shown, stats) {
    const before = this.#undecodable;
    const lost = new Set([...before.keys(), ...more].filter((key) => !shown.has(key)));
    this.#undecodable = new Map(this.#watched.slots.slots.flatMap(({ mid, peer, source }) => {
      const key = slotKey(peer, source);
      const known = before.get(key) ?? { peer, source: /** @type {import('./protocol.js').Source} */ (source), codec: stats.inbound.get(mid)?.codec ?? '' };
      return lost.has(key) ? [[key, known]] : [];
    }));
    const same = before.size === this.#undecodable.size && [...before.keys()].every((key) => this.#undecodable.has(key));
    if (!same) this.#watched.undecodable([...this.#undecodable.values()]);
  }
}
