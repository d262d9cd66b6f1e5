// Whether everything that flows on one connection arrives on another one.

import { slotKey } from './slots.js';

/** @typedef {import('./protocol.js').Slot} Slot */
/** @typedef {import('./slots.js').Lane} Lane */
/** @typedef {{framesDecoded: number, frameWidth: number}} Figures */
/** @typedef {Map<string, {slot: Slot, lane: Lane}>} Occupied by slotKey */

/** A stream counts as flowing when its last delivery is less than this long ago. */
const FLOWS_MS = 1000;
/** The delivery that the first look finds may be old, so only a second delivery proves that a stream flows. */
const PROOF = 2;

/** When each lane delivered a decoded frame or played sound, by this page's clock. */
class Deliveries {
  /** @type {Map<string, {timestamp: number, atMs: number, count: number}>} */
  #seen = new Map();

  /**
   * @param {Occupied} occupied
   * @param {number} nowMs
   */
  look(occupied, nowMs) {
    for (const [key, { slot, lane }] of occupied) {
      const id = `${slot.mid} ${key}`;
      for (const { timestamp } of lane.receiver.getSynchronizationSources()) {
        const { timestamp: before = -Infinity, count = 0 } = this.#seen.get(id) ?? {};
        if (timestamp > before) this.#seen.set(id, { timestamp, atMs: nowMs, count: count + 1 });
      }
    }
  }

  /**
   * @param {string} key
   * @param {Slot} slot
   * @returns {{atMs: number, count: number}}
   */
  of(key, slot) {
    return this.#seen.get(`${slot.mid} ${key}`) ?? { atMs: -Infinity, count: 0 };
  }
}

export class Arrivals {
  #isExpected;
  #old = new Deliveries();
  #next = new Deliveries();
  /** @type {Occupied} */
  #oldLanes = new Map();
  /** @type {Occupied} */
  #nextLanes = new Map();

  /** @param {(stream: import('./protocol.js').Stream) => boolean} isExpected whether a stream should be shown now */
  constructor(isExpected) {
    this.#isExpected = isExpected;
  }

  /**
   * @param {Occupied} old
   * @param {Slot[]} slots of the new connection
   * @param {Lane[]} lanes of the new connection
   * @param {number} nowMs
   */
  look(old, slots, lanes, nowMs) {
    const byMid = new Map(lanes.map((lane) => [lane.mid, lane]));
    this.#oldLanes = old;
    this.#nextLanes = new Map(slots.flatMap((slot) => {
      const lane = byMid.get(slot.mid);
      return lane && slot.peer !== '' ? [[slotKey(slot.peer, slot.source), { slot, lane }]] : [];
    }));
    this.#old.look(this.#oldLanes, nowMs);
    this.#next.look(this.#nextLanes, nowMs);
  }

  /** Whether anything has arrived on the new connection. */
  get any() {
    return [...this.#nextLanes].some(([key, { slot }]) => this.#next.of(key, slot).count > 0);
  }

  /**
   * Returns the streams that the old connection shows and the new one has not delivered yet. `flows` lists those that flow now and would be
   * missed at once. `still` lists expected pictures that stand still, or that the new path does not carry yet.
   * @param {number} nowMs
   * @param {ReadonlyMap<string, {framesDecoded: number}>} shown what the old connection has decoded, by mid
   * @returns {{flows: string[], still: string[]}} by slotKey
   */
  missing(nowMs, shown) {
    /** @type {{flows: string[], still: string[]}} */
    const missing = { flows: [], still: [] };
    for (const [key, { slot }] of this.#oldLanes) {
      const next = this.#nextLanes.get(key)?.slot;
      const { count, atMs } = this.#old.of(key, slot);
      if (next && this.#next.of(key, next).count > 0) continue;
      const flows = count >= PROOF && nowMs - atMs < FLOWS_MS;
      const expected = this.#isExpected(/** @type {import('./protocol.js').Stream} */ (slot));
      if (flows && !next?.paused) missing.flows.push(key);
      else if (expected && (shown.get(slot.mid)?.framesDecoded ?? 0) > 0) missing.still.push(key);
    }
    return missing;
  }

  /**
   * Whether the new connection has decoded every picture that both connections show (`all`), and none of them smaller (`large`). Deliveries are
   * not enough, because not every browser counts a delivery only when a frame is decoded.
   * @param {ReadonlyMap<string, Figures>} old by mid
   * @param {ReadonlyMap<string, Figures>} next by mid
   */
  decoded(old, next) {
    let [all, large] = [true, true];
    for (const [key, { slot }] of this.#nextLanes) {
      const shown = this.#oldLanes.get(key);
      if (slot.kind !== 'video' || !shown || this.#next.of(key, slot).count === 0) continue;
      const [before, now] = [old.get(shown.slot.mid), next.get(slot.mid)];
      all &&= (now?.framesDecoded ?? 0) > 0;
      large &&= (now?.frameWidth ?? 0) >= (before?.frameWidth ?? 0);
    }
    return { all, large };
  }
}
