/** The connection that a live move has left: it goes on sending to those who have not arrived yet. */
export class Lingering {
  /** @type {import('./transport.js').Transport | null} */
  #transport = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  #epoch = 0;
  #settled = 0;

  /**
   * Closes it when everybody has arrived at the epoch, or the time is over. The one before must be closed.
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
