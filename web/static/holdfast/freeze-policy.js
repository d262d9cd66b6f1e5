// What is done about a stream that should be shown and is not. Pure: what is frozen
// in, what to do out.

/** @typedef {import('./protocol.js').How} How */
/**
 * A stream that is due and of which nothing has been shown for `frozenMs`. `sends`: media of it arrives all the same. `moved`: it was
 * shown before the last move and has not been since. `doubt`: how many times longer to wait before the connection is renewed.
 * @typedef {{key: string, mid: string, frozenMs: number, sends: boolean, moved: boolean, doubt: number}} Frozen
 */
/**
 * The m-lines of which the node is asked for a keyframe, and how the connection is renewed ('': it is not).
 * @typedef {{refresh: string[], how: How | ''}} Remedy
 */

const REFRESH_MS = 1000;
const RESTART_MS = 2500;
const CONNECT_MS = 4000;
/** The pause after the first new connection; each later one doubles it. */
const PAUSE_MS = 8000;
/** The longest pause, of questions and of connections. */
const CEILING_MS = 60000;
/** How soon after a renewal the node is asked again. */
const SETTLE_MS = 500;

/**
 * Asks the node after a second, offers anew after 2.5 s, and makes a new connection after 4 s.
 *
 * The node is asked about every stream, slower and slower: its publisher may simply send nothing, which a viewer cannot
 * tell. The connection is renewed only for a stream of which media arrives and nothing is decoded, and, once per move, for one that
 * was shown before the move. In a crowd the renewals are spread, because everybody may miss the same stream.
 */
export class FreezePolicy {
  #random;
  /**
   * When the node is asked next, in frozenMs, by stream.
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
    // On a silent connection the question is whether its node lives, and others ask it.
    const refresh = silent ? [] : frozen.flatMap((stream) => this.#ask(stream));
    const how = this.#renew(frozen, nowMs, people);
    if (how !== '') {
      for (const { key, frozenMs } of frozen) this.#askAt.set(key, frozenMs + SETTLE_MS);
    }
    return { refresh, how };
  }

  /** The room moved, or the connection was renewed for another reason: begins anew. */
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
