// Who is in the room, as last said by its owner. Pure.

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

  /** The last event seen: the cursor of a `resume`. */
  get cursor() {
    return { epoch: this.#epoch, seq: this.#seq };
  }

  /**
   * A snapshot replaces everything. Returns who is gone since the last one.
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
   * One change. False for one that was seen before: a resumed session is told
   * again what it may have missed.
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
