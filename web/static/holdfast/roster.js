// The roster: the people in the room, as the server told it. Pure.

/** @typedef {import('./protocol.js').RosterEntry} RosterEntry */
/** @typedef {import('./protocol.js').PeerChanged | import('./protocol.js').PeerLeft | import('./protocol.js').RosterChanges} Change */

export class Roster {
  /** @type {Map<string, RosterEntry>} */
  #entries = new Map();
  #epoch = 0;
  #seq = 0;

  /** @returns {RosterEntry[]} */
  get entries() {
    return [...this.#entries.values()];
  }

  /** The position of the last roster event seen, which a `resume` names. */
  get cursor() {
    return { epoch: this.#epoch, seq: this.#seq };
  }

  /**
   * Replaces the roster by a snapshot, and returns the peers that are no longer in it.
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
   * Applies one change, or several. Returns false, and changes nothing, when the roster has them already.
   * @param {Change} change
   */
  apply(change) {
    if (change.epoch < this.#epoch || (change.epoch === this.#epoch && change.seq <= this.#seq)) return false;
    this.#epoch = change.epoch;
    this.#seq = change.seq;
    if (change.type === 'peer-left') this.#entries.delete(change.peer);
    else if (change.type === 'roster-changes') {
      for (const peer of change.left) this.#entries.delete(peer);
      for (const entry of change.entries) this.#entries.set(entry.peer, entry);
    } else this.#entries.set(change.peer.peer, change.peer);
    return true;
  }
}
