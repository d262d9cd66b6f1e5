// Who is in the room. Pure.

/** @typedef {import('./protocol.js').RosterEntry} RosterEntry */
/** @typedef {import('./protocol.js').PeerChanged | import('./protocol.js').PeerLeft} Change */

export class Roster {
  /** @type {Map<string, RosterEntry>} */
  #entries = new Map();
  #epoch = 0;
  #seq = 0;

  /** @returns {RosterEntry[]} */
  get entries() {
    return [...this.#entries.values()];
  }

  /** The cursor of a `resume`. */
  get cursor() {
    return { epoch: this.#epoch, seq: this.#seq };
  }

  /**
   * Returns who is gone since the last snapshot.
   * @param {{roster: RosterEntry[], epoch: number, seq: number}} snapshot
   * @returns {string[]} peer ids
   */
  replace({ roster, epoch, seq }) {
    const before = [...this.#entries.keys()];
    this.#entries = new Map(roster.map((entry) => [entry.peer, entry]));
    this.#epoch = epoch;
    this.#seq = seq ?? 0;
    return before.filter((peer) => !this.#entries.has(peer));
  }

  /**
   * False for a change that was seen before.
   * @param {Change} change
   */
  apply(change) {
    if (change.epoch < this.#epoch || (change.epoch === this.#epoch && change.seq <= this.#seq)) return false;
    this.#epoch = change.epoch;
    this.#seq = change.seq;
    if (change.type === 'peer-left') this.#entries.delete(change.peer);
    else this.#entries.set(change.peer.peer, change.peer);
    return true;
  }
}
