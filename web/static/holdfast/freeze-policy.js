// Decides what is done about a stream that should be shown and is not. Pure.

/** @typedef {import('./protocol.js').How} How */
/**
 * Nothing of the stream was shown for `frozenMs`. `sends`: media of it arrives. `moved`: it was shown before the last
 * move, not since. `doubt`: how many times longer to wait before the connection is renewed.
 * @typedef {{key: string, mid: string, frozenMs: number, sends: boolean, moved: boolean, doubt: number}} Frozen
 */
/**
 * The m-lines to refresh, and how the connection is renewed ('': it is not).
 * @typedef {{refresh: string[], how: How | ''}} Remedy
 */

const REFRESH_MS = 1000;
const RESTART_MS = 2500;
const CONNECT_MS = 4000;
/** The pause after the first new connection; each later new connection doubles it. */
const PAUSE_MS = 8000;
/** The longest pause between two questions for one stream, and between two new connections. */
const CEILING_MS = 60000;
/** After a renewal the node is asked again this soon. */
const SETTLE_MS = 500;

/**
 * Asks the node after 1 s, offers anew after 2.5 s, makes a new connection after 4 s. A viewer cannot tell a silent
 * publisher from a bad node. So the connection is renewed only for a stream that arrives undecoded, and, once per
 * move, for one that was shown before. In a crowd renewals are spread.
 */
export class FreezePolicy {
  #random;
  /**
   * For each stream, at which frozenMs the node is asked next.
   * @type {Map<string, number>}
   */
  #askAt = new Map();
  #rung = 0;
  #stretch = 1;
  #pauseMs = PAUSE_MS;
  #renewedAt = -Infinity;
  #heldUntil = -Infinity;

  /** @param {() => number} [random] 0 to 1 */
  constructor(random = Math.random) {
    this.#random = random;
  }

  /**
   * @param {Frozen[]} frozen everything that is frozen now
   * @param {{nowMs: number, people: number, silent: boolean}} call `people` in the room; `silent`: nothing at all arrives on the connection
   * @returns {Remedy}
   */
  next(frozen, { nowMs, people, silent }) {
    const keys = new Set(frozen.map(({ key }) => key));
    for (const key of this.#askAt.keys()) {
      if (!keys.has(key)) this.#askAt.delete(key);
    }
    if (nowMs - this.#renewedAt > 2 * CEILING_MS) this.#pauseMs = PAUSE_MS;
    // A silent connection gets no questions here, because other parts find out whether its node lives.
    const refresh = silent ? [] : frozen.flatMap((stream) => this.#ask(stream));
    const how = this.#renew(frozen, nowMs, people);
    if (how !== '') {
      for (const { key, frozenMs } of frozen) this.#askAt.set(key, frozenMs + SETTLE_MS);
    }
    return { refresh, how };
  }

  /** Forgets the present freezes, after a move or after a renewal for another reason. */
  reset() {
    this.#askAt.clear();
    this.#rung = 0;
    this.#heldUntil = -Infinity;
  }

  /**
   * @param {Frozen} stream
   * @returns {string[]}
   */
  #ask({ key, mid, frozenMs }) {
    if (frozenMs < (this.#askAt.get(key) ?? REFRESH_MS)) return [];
    this.#askAt.set(key, frozenMs + Math.min(frozenMs, CEILING_MS));
    return [mid];
  }

  /**
   * @param {Frozen[]} frozen
   * @param {number} nowMs
   * @param {number} people
   * @returns {How | ''}
   */
  #renew(frozen, nowMs, people) {
    if (frozen.length === 0) this.#rung = 0;
    const urgent = frozen.filter(({ sends, moved }) => sends || (moved && this.#rung < 2));
    if (urgent.length === 0 || nowMs < this.#heldUntil) return '';
    if (this.#rung === 0) this.#stretch = 1 + this.#random() * Math.min(Math.max(people - 2, 0) / 10, 4);
    const waitedMs = Math.max(...urgent.map(({ frozenMs, doubt }) => frozenMs / (doubt * this.#stretch)));
    if (waitedMs < (this.#rung === 0 ? RESTART_MS : CONNECT_MS)) return '';
    this.#rung++;
    this.#renewedAt = nowMs;
    if (this.#rung === 1) return 'restart';
    this.#heldUntil = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, CEILING_MS);
    return 'new-connection';
  }
}
