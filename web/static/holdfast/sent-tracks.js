// The tracks that are sent: on this connection and on every later one.

/** @typedef {import('./protocol.js').Source} Source */
/** @typedef {import('./transport.js').Transport} Transport */

export class SentTracks {
  /** @type {Map<Source, MediaStreamTrack | null>} */
  #tracks = new Map();

  /**
   * @param {Source} source
   * @param {MediaStreamTrack | null} track
   */
  set(source, track) {
    this.#tracks.set(source, track);
  }

  /**
   * Whether the devices of these sources give nothing.
   * @param {(Source | undefined)[]} sources
   */
  giveNothing(sources) {
    const tracks = sources.map((source) => source && this.#tracks.get(source));
    return tracks.length > 0 && tracks.every((track) => !track || track.muted || track.readyState === 'ended');
  }

  /** @param {Transport | null} transport */
  silence(transport) {
    for (const source of this.#tracks.keys()) transport?.setTrack(source, null);
  }

  /** @param {Transport} transport */
  carry(transport) {
    for (const [source, track] of this.#tracks) transport.setTrack(source, track);
  }

  /**
   * Sends again what a called-off attempt took. The rest is not touched: a browser makes no offer before it has done
   * what was asked of its senders.
   * @param {Transport} transport
   */
  restore(transport) {
    for (const [source, track] of this.#tracks) {
      if (!transport.sends(source, track)) transport.setTrack(source, track);
    }
  }
}
