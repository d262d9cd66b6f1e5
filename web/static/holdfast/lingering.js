/** The old connection of a finished live move. It stays open so that peers who have not moved yet still receive from this client. */
export class Lingering {
  /** @type {import('./transport.js').Transport | null} */
  #transport = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #epoch = 0;
  #settled = 0;

  /** A move begins, perhaps under the epoch of the former one, of which `settled` tells nothing any more. */
  begin() {
    this.close();
    this.#settled = 0;
  }

  /**
   * Keeps the connection until every peer has arrived at the epoch, or `overlapMs` is over, and closes it then. A connection that was kept
   * before must be closed first.
   * @param {import('./transport.js').Transport} transport
   * @param {{epoch: number, overlapMs: number}} until
   */
  keep(transport, { epoch, overlapMs }) {
    this.#transport = transport;
    this.#epoch = epoch;
    if (this.#settled >= epoch) this.close();
    else this.#timer = setTimeout(() => this.close(), overlapMs);
  }

  /** @param {number} epoch everybody has arrived there */
  settled(epoch) {
    this.#settled = Math.max(this.#settled, epoch);
    if (this.#settled >= this.#epoch) this.close();
  }

  /**
   * @param {import('./protocol.js').Source} source
   * @param {MediaStreamTrack | null} track
   */
  async setTrack(source, track) {
    await this.#transport?.setTrack(source, track);
  }

  close() {
    clearTimeout(this.#timer);
    this.#transport?.close();
    this.#transport = null;
  }
}
