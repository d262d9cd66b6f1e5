// Decides what is done about a stream that should be shown and is not. Pure.

/** @typedef {import('./protocol.js').How} How */
/**
 * Nothing of the stream was shown for `frozenMs`. `sends`: media of it arrives. `moved`: it was shown before the last
 * move, not since. `proven`: it was shown before in this call. `doubt`: how many times longer to wait before the
 * connection is renewed.
 * @typedef {{key: string, mid: string, frozenMs: number, sends: boolean, moved: boolean, proven: boolean, doubt: number}} Frozen
 */
/**
 * The m-lines to refresh, and how the connection is renewed ('': it is not). `givenUp` has the keys of the streams that
 * arrive, cannot be decoded, and are asked about no more.
 * @typedef {{refresh: string[], how: How | '', givenUp: string[]}} Remedy
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
/** A stream that arrives undecoded is given up when it has been frozen for so long: after questions at 1, 2, 4 and 8 s. */
const GIVE_UP_MS = 8000;
/** How often the connection is renewed while the same trouble lasts: an offer, and a new connection. */
const RENEWALS = 2;

/**
 * Asks the node after 1 s and ever more seldom. That is all that is done about one stream: a viewer cannot tell a silent
 * publisher, or one with another key or an odd codec, from a bad node. The connection is renewed, by an offer after 2.5 s
 * and a new connection after 4 s, only when it is itself in doubt: for streams that were shown before a move and not
 * since, and when nothing that arrives is shown although it was shown before. In a crowd renewals are spread.
 */
export class FreezePolicy {
  #random;
  /**
   * For each stream, at which frozenMs the node is asked next, whether media of it arrived since it froze, and whether it is given up.
   * @type {Map<string, {askAt: number, arrives: boolean, givenUp: boolean}>}
   */
  #streams = new Map();
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
   * @param {{nowMs: number, people: number, silent: boolean, shows: boolean}} call `people` in the room; `silent`: nothing at all arrives on the
   *   connection; `shows`: some stream was shown in the last seconds
   * @returns {Remedy}
   */
  next(frozen, { nowMs, people, silent, shows }) {
    const keys = new Set(frozen.map(({ key }) => key));
    for (const key of this.#streams.keys()) {
      if (!keys.has(key)) this.#streams.delete(key);
    }
    if (nowMs - this.#renewedAt > 2 * CEILING_MS) this.#pauseMs = PAUSE_MS;
    // A silent connection gets no questions here, because other parts find out whether its node lives.
    const refresh = silent ? [] : frozen.flatMap((stream) => this.#ask(stream));
    const how = this.#renew(frozen.filter(({ sends, moved, proven }) => moved || (sends && proven && !shows)), nowMs, people);
    if (how !== '') {
      for (const { key, frozenMs } of frozen) this.#of(key).askAt = frozenMs + SETTLE_MS;
    }
    return { refresh, how, givenUp: [...this.#streams].flatMap(([key, { givenUp }]) => (givenUp ? [key] : [])) };
  }

  /** Forgets the present freezes, after a move or after a renewal for another reason. */
  reset() {
    this.#streams.clear();
    this.#rung = 0;
    this.#heldUntil = -Infinity;
  }

  /** @param {string} key */
  #of(key) {
    let stream = this.#streams.get(key);
    if (!stream) this.#streams.set(key, stream = { askAt: REFRESH_MS, arrives: false, givenUp: false });
    return stream;
  }

  /**
   * @param {Frozen} frozen
   * @returns {string[]}
   */
  #ask({ key, mid, frozenMs, sends }) {
    const stream = this.#of(key);
    stream.arrives ||= sends;
    if (stream.givenUp || frozenMs < stream.askAt) return [];
    stream.askAt = frozenMs + Math.min(frozenMs, CEILING_MS);
    stream.givenUp = stream.arrives && frozenMs >= GIVE_UP_MS;
    return [mid];
  }

  /**
   * @param {Frozen[]} doubtful those that put the connection in doubt
   * @param {number} nowMs
   * @param {number} people
   * @returns {How | ''}
   */
  #renew(doubtful, nowMs, people) {
    if (doubtful.length === 0) this.#rung = 0;
    if (doubtful.length === 0 || this.#rung >= RENEWALS || nowMs < this.#heldUntil) return '';
    if (this.#rung === 0) this.#stretch = 1 + this.#random() * Math.min(Math.max(people - 2, 0) / 10, 4);
    const waitedMs = Math.max(...doubtful.map(({ frozenMs, doubt }) => frozenMs / (doubt * this.#stretch)));
    if (waitedMs < (this.#rung === 0 ? RESTART_MS : CONNECT_MS)) return '';
    this.#rung++;
    this.#renewedAt = nowMs;
    if (this.#rung === 1) return 'restart';
    this.#heldUntil = nowMs + this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, CEILING_MS);
    return 'new-connection';
  }
}
